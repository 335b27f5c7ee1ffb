//! Who asks, and what they may.
//!
//! A request is signed with one of the account's keys ([`shared_key`]), or carries in its address a signature that
//! someone with a key has made for it ([`sas`]). All that comes out is a [`Grant`], which handlers ask.

mod sas;
mod shared_key;

use std::net::IpAddr;
use std::time::SystemTime;

use http::Method;
use orrery_gateway::{KeyKind, Keys, Peer};

use crate::errors::{Own, Refusal};
use crate::filter::Filter;
use crate::headers::Headers;
use crate::parameters::Parameters;

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

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    ListTables,
    CreateTable,
    DeleteTable,
    ReadService,
    /// Reads entities.
    Read,
    Add,
    Update,
    /// Writes an entity, whether there is one or not.
    Upsert,
    Delete,
}

impl Act {
    fn is_read(self) -> bool {
        matches!(self, Act::ListTables | Act::ReadService | Act::Read)
    }
}

/// What the sender of a request may do.
#[derive(Clone, Debug)]
pub(crate) enum Grant {
    Everything,
    ReadOnly,
    Sas(Sas),
}

/// Finds out who sent a request.
pub(crate) fn authenticate(keys: &Keys, shown: &Shown<'_>, now: SystemTime) -> Result<Grant, Refusal> {
    match shown.headers.authorization {
        Some(header) => match header.split_once(' ').map(|(scheme, rest)| (scheme, rest.trim())) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("SharedKey") => {
                shared_key::verify(keys, shown, rest, shared_key::Form::Full, now)
            }
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("SharedKeyLite") => {
                shared_key::verify(keys, shown, rest, shared_key::Form::Lite, now)
            }
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("Bearer") => {
                Err(Refusal::not_implemented("tokens of Microsoft Entra ID on the Table endpoint"))
            }
            _ => Err(invalid("The authorization header is not of a form that is known.")),
        }
        .map(|kind| match kind {
            KeyKind::ReadWrite => Grant::Everything,
            KeyKind::ReadOnly => Grant::ReadOnly,
        }),
        None if shown.parameters.get("sig").is_some() => sas::verify(keys, shown, now).map(Grant::Sas),
        None => Err(Own::Unauthorized(
            "Required Header authorization is missing. Ensure a valid Authorization token is passed.".into(),
        )
        .into()),
    }
}

fn invalid(message: &'static str) -> Refusal {
    Own::AuthenticationFailed(message.into()).into()
}

impl Grant {
    /// Whether an operation on a table may go on.
    pub fn check(&self, act: Act, table: Option<&str>) -> Result<(), Refusal> {
        let may = match self {
            Grant::Everything => true,
            Grant::ReadOnly => act.is_read(),
            Grant::Sas(sas) => sas.allows(act, table),
        };
        if may { Ok(()) } else { Err(Own::PermissionMismatch.into()) }
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
            Grant::Everything | Grant::ReadOnly => None,
        }
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
