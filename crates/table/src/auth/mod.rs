//! Who asks, and what they may.
//!
//! A request is signed with one of the account's keys ([`shared_key`]), or carries in its address a signature that
//! someone with a key has made for it ([`sas`]). All that comes out is a [`Grant`], which handlers ask.

mod sas;
mod shared_key;

use std::net::IpAddr;
use std::time::SystemTime;

use http::Method;
use orrery_cluster::Catalog;
use orrery_gateway::roles::{self, Rights};
use orrery_gateway::{Entra, KeyKind, Keys, Peer, Principal};

use crate::acl::Policy;
use crate::errors::{Own, Refusal};
use crate::filter::Filter;
use crate::headers::Headers;
use crate::limits::BEARER_BYTES_MAX;
use crate::parameters::Parameters;
use crate::tables::DATABASE;

pub(crate) use sas::Sas;
pub(crate) use shared_key::account_of;

/// What a request shows of who sent it.
pub(crate) struct Shown<'a> {
    pub method: &'a Method,
    /// As it was sent.
    pub path: &'a str,
    pub parameters: &'a Parameters<'a>,
    pub headers: &'a Headers<'a>,
    pub peer: Peer,
    /// The names under which clients may know the account.
    pub accounts: &'a [&'a str],
}

/// Whom the account trusts.
pub(crate) struct Authority<'a> {
    pub keys: &'a Keys,
    pub entra: Option<&'a Entra>,
    /// The policy of a table by its name.
    pub policy: &'a dyn Fn(&str, &str) -> Option<Policy>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    ListTables,
    CreateTable,
    DeleteTable,
    ReadService,
    WriteService,
    ReadPolicies,
    WritePolicies,
    /// Reads an entity, or those that a filter finds.
    Read,
    Query,
    Add,
    Update,
    /// Writes an entity, whether there is one or not.
    Upsert,
    Delete,
    /// Writes several entities, whatever each of them is.
    Transact,
}

impl Act {
    fn is_read(self) -> bool {
        matches!(self, Act::ListTables | Act::ReadService | Act::ReadPolicies | Act::Read | Act::Query)
    }
}

/// An operation that a client wants to carry out.
pub(crate) struct Asked<'a> {
    pub act: Act,
    pub table: Option<&'a str>,
    pub catalog: &'a Catalog,
    /// The account's name, for messages.
    pub account: &'a str,
}

/// What the sender of a request may do.
#[derive(Clone, Debug)]
pub(crate) enum Grant {
    Everything,
    ReadOnly,
    Sas(Sas),
    /// What the roles of a principal say.
    Principal(Principal),
}

/// Finds out who sent a request.
pub(crate) fn authenticate(
    authority: &Authority<'_>,
    shown: &Shown<'_>,
    now: SystemTime,
) -> Result<Grant, Refusal> {
    let keys = authority.keys;
    match shown.headers.authorization {
        Some(header) => match header.split_once(' ').map(|(scheme, rest)| (scheme, rest.trim())) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("SharedKey") => {
                shared_key::verify(keys, shown, rest, shared_key::Form::Full, now)
            }
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("SharedKeyLite") => {
                shared_key::verify(keys, shown, rest, shared_key::Form::Lite, now)
            }
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("Bearer") => {
                return bearer(authority, rest, now);
            }
            _ => Err(invalid("The authorization header is not of a form that is known.")),
        }
        .map(|kind| match kind {
            KeyKind::ReadWrite => Grant::Everything,
            KeyKind::ReadOnly => Grant::ReadOnly,
        }),
        None if shown.parameters.get("sig").is_some() => {
            sas::verify(keys, shown, authority.policy, now).map(Grant::Sas)
        }
        None => Err(Own::Unauthorized(
            "Required Header authorization is missing. Ensure a valid Authorization token is passed.".into(),
        )
        .into()),
    }
}

fn bearer(authority: &Authority<'_>, token: &str, now: SystemTime) -> Result<Grant, Refusal> {
    if token.len() > BEARER_BYTES_MAX {
        return Err(invalid("The authorization header is too long."));
    }
    let entra = authority.entra.ok_or_else(orrery_gateway::entra::not_configured)?;
    Ok(Grant::Principal(entra.verify(token, now)?))
}

fn invalid(message: &'static str) -> Refusal {
    Own::AuthenticationFailed(message.into()).into()
}

impl Grant {
    /// Whether an operation on a table may go on.
    pub fn check(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let Asked { act, table, .. } = *asked;
        let may = match self {
            Grant::Everything => true,
            Grant::ReadOnly => act.is_read(),
            Grant::Sas(sas) => sas.allows(act, table),
            Grant::Principal(principal) => return check_roles(principal, asked),
        };
        if may { Ok(()) } else { Err(Own::PermissionMismatch.into()) }
    }

    /// What an operation of a batch needs: roles allow batches as such, all others each operation.
    pub fn act_of_part(&self, act: Act) -> Act {
        match self {
            Grant::Principal(_) => Act::Transact,
            Grant::Everything | Grant::ReadOnly | Grant::Sas(_) => act,
        }
    }

    /// Whether an entity is among those that the sender may touch.
    pub fn check_key(&self, partition_key: &str, row_key: &str) -> Result<(), Refusal> {
        match self {
            Grant::Sas(sas) if !sas.covers(partition_key, row_key) => Err(Own::PermissionMismatch.into()),
            _ => Ok(()),
        }
    }

    /// What else must hold of the entities that a query shows.
    pub fn restriction(&self) -> Option<Filter> {
        match self {
            Grant::Sas(sas) => sas.restriction(),
            Grant::Everything | Grant::ReadOnly | Grant::Principal(_) => None,
        }
    }
}

/// Whether the roles of a principal allow an operation. What concerns rights, and the service as a whole, needs a key.
fn check_roles(principal: &Principal, asked: &Asked<'_>) -> Result<(), Refusal> {
    let below = match asked.act {
        Act::ListTables => None,
        Act::CreateTable => Some("write"),
        Act::DeleteTable => Some("delete"),
        Act::Read => Some("containers/entities/read"),
        Act::Query => Some("containers/executeQuery"),
        Act::Add => Some("containers/entities/create"),
        Act::Update => Some("containers/entities/replace"),
        Act::Upsert => Some("containers/entities/upsert"),
        Act::Delete => Some("containers/entities/delete"),
        Act::Transact => Some("containers/executeStoredProcedure"),
        Act::ReadService | Act::WriteService | Act::ReadPolicies | Act::WritePolicies => {
            return Err(Own::NotForPrincipals.into());
        }
    };
    let action =
        below.map_or_else(|| roles::READ_METADATA.to_owned(), |below| format!("{}{below}", roles::TABLES));
    let link = match asked.table {
        Some(table) => format!("dbs/{DATABASE}/colls/{table}"),
        None => format!("dbs/{DATABASE}"),
    };
    // Who may see a table may see which there are.
    let within = asked.table.is_some() || asked.act != Act::ListTables;
    let rights = Rights { principal, catalog: asked.catalog };
    match rights.allow(&action, within.then_some(link.as_str())) {
        true => Ok(()),
        false => Err(Own::Forbidden(roles::blocked(asked.account, principal, &action, &link)).into()),
    }
}

/// Whether an address lies in what a signature names: one address, or a range of them.
fn is_within(address: IpAddr, named: &str) -> bool {
    let (first, last) = named.split_once('-').unwrap_or((named, named));
    match (first.trim().parse::<IpAddr>(), last.trim().parse::<IpAddr>()) {
        (Ok(first), Ok(last)) => first <= address && address <= last,
        _ => false,
    }
}
