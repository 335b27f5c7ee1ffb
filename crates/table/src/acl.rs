//! Stored access policies of a table: terms that shared access signatures name instead of bringing them, so that they
//! can be changed and taken back after the signature was given away.

use http::StatusCode;
use orrery_cluster::{Catalog, ChildKind, Container, ru};

use crate::errors::{Own, Refusal};
use crate::gateway::Call;
use crate::limits::{POLICIES_MAX, POLICY_NAME_CHARS_MAX};
use crate::moment;
use crate::respond::{Reply, receipt};
use crate::service::{STORED_XML, XML, setting};
use crate::tables;
use crate::xml::{self, Element};

/// The name under which the catalog keeps the policies of a table.
const SETTING: &str = "table-access-policies";

/// What a policy says; an empty part says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    pub start: String,
    pub expiry: String,
    pub permissions: String,
}

pub(crate) fn show(call: &Call<'_>, table: &str) -> Result<Reply, Refusal> {
    let container = tables::find(call.catalog, table)?;
    let stored = stored(call.catalog, &container);
    let text = stored.unwrap_or_else(|| Element::of(LIST, Vec::new())).document();
    Ok(Reply::new(StatusCode::OK, XML, text).receipt(receipt("catalog read", ru::METADATA_READ)))
}

/// Replaces all policies of a table. A body without any takes all of them back.
pub(crate) async fn replace(call: &Call<'_>, table: &str, body: &[u8]) -> Result<Reply, Refusal> {
    let container = tables::find(call.catalog, table)?;
    let list = match body.trim_ascii() {
        b"" => Element::of(LIST, Vec::new()),
        text => xml::parse(text)?,
    };
    check(&list)?;
    let mut text = String::new();
    list.write(&mut text);
    let owner = container.resource.rid;
    call.db.upsert_child(ChildKind::ContainerSetting, owner, setting(SETTING, &text), None).await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT).receipt(receipt("catalog write", ru::METADATA_WRITE)))
}

/// A policy of a table by its name. Signatures name tables in any letter case.
pub(crate) fn policy(catalog: &Catalog, table: &str, name: &str) -> Option<Policy> {
    let database = catalog.database(tables::DATABASE)?;
    let same = || database.containers().find(|other| other.resource.id.eq_ignore_ascii_case(table));
    let container = database.container(table).or_else(same)?;
    let list = stored(catalog, container)?;
    let found = list.children.iter().find(|identifier| identifier.text_of("Id") == name)?;
    let part = |part: &str| found.child("AccessPolicy").map_or("", |policy| policy.text_of(part)).to_owned();
    Some(Policy { start: part("Start"), expiry: part("Expiry"), permissions: part("Permission") })
}

const LIST: &str = "SignedIdentifiers";

fn stored(catalog: &Catalog, container: &Container) -> Option<Element> {
    let child = catalog.child(ChildKind::ContainerSetting, container.resource.rid, SETTING)?;
    xml::parse(child.resource.body.root().get(STORED_XML).as_str()?.as_bytes()).ok()
}

fn check(list: &Element) -> Result<(), Own> {
    if list.name != LIST || list.children.len() > POLICIES_MAX {
        return Err(Own::InvalidXml);
    }
    let mut names = Vec::new();
    for identifier in &list.children {
        let name = identifier.text_of("Id");
        let is_name = !name.is_empty() && name.chars().count() <= POLICY_NAME_CHARS_MAX;
        if identifier.name != "SignedIdentifier" || !is_name || names.contains(&name) {
            return Err(Own::InvalidXmlValue);
        }
        names.push(name);
        let Some(policy) = identifier.child("AccessPolicy") else { continue };
        let is_time = |part: &str| {
            let text = policy.text_of(part);
            text.is_empty() || moment::parse(text).is_some()
        };
        let rights = policy.text_of("Permission");
        if !is_time("Start") || !is_time("Expiry") || !rights.chars().all(|right| "raud".contains(right)) {
            return Err(Own::InvalidXmlValue);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifier(name: &str, policy: &str) -> String {
        format!("<SignedIdentifier><Id>{name}</Id><AccessPolicy>{policy}</AccessPolicy></SignedIdentifier>")
    }

    #[test]
    fn policies_are_checked() {
        let whole = "<Start>2022-01-01T00:00:00.0000000Z</Start><Expiry>2030-01-01</Expiry><Permission>raud</Permission>";
        let five: String = (0..5).map(|number| identifier(&number.to_string(), whole)).collect();
        for (identifiers, is_right) in [
            (String::new(), true),
            (identifier("a", whole), true),
            (identifier("a", "<Start /><Expiry />"), true),
            ("<SignedIdentifier><Id>a</Id></SignedIdentifier>".to_owned(), true),
            (five.clone(), true),
            (format!("{five}{}", identifier("5", whole)), false),
            (identifier("", whole), false),
            (identifier(&"a".repeat(65), whole), false),
            (identifier("a", whole).repeat(2), false),
            (identifier("a", "<Permission>x</Permission>"), false),
            (identifier("a", "<Expiry>soon</Expiry>"), false),
            ("<Else />".to_owned(), false),
        ] {
            let text = format!("<SignedIdentifiers>{identifiers}</SignedIdentifiers>");
            let list = xml::parse(text.as_bytes()).expect("XML");
            assert_eq!(check(&list).is_ok(), is_right, "{identifiers}");
        }
    }
}
