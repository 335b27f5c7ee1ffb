//! Turns an address into an [`Endpoint`].
//!
//! Addresses have one segment; in front of it there may be the name of the account, where the host does not tell it.
//! Keys stand in parentheses, as OData has it: quotes are doubled, and then all is percent-encoded. The names of tables may
//! have parentheses of their own, so the keys of an entity begin where an address first says one of theirs.

use crate::errors::{ONE_INPUT, Own, Refusal};
use crate::limits;
use crate::parameters::{Parameters, decode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `/?comp=properties`, `/?comp=stats`
    Service {
        what: ServicePart,
    },
    Tables,
    Table {
        table: String,
    },
    /// `/t?comp=acl`
    Acl {
        table: String,
    },
    Entities {
        table: String,
    },
    Entity {
        table: String,
        partition_key: String,
        row_key: String,
    },
    Batch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServicePart {
    Properties,
    Stats,
}

impl Endpoint {
    /// The table that it is about.
    pub fn table(&self) -> Option<&str> {
        match self {
            Endpoint::Table { table }
            | Endpoint::Acl { table }
            | Endpoint::Entities { table }
            | Endpoint::Entity { table, .. } => Some(table),
            Endpoint::Service { .. } | Endpoint::Tables | Endpoint::Batch => None,
        }
    }
}

/// Reads a path as it was sent. `is_account` says whether a name may be that of an account.
pub(crate) fn route(
    path: &str,
    parameters: &Parameters<'_>,
    is_account: impl Fn(&str) -> bool,
) -> Result<Endpoint, Refusal> {
    let rest = path.strip_prefix('/').unwrap_or(path);
    let comp = parameters.get("comp");
    let segment = match rest.trim_end_matches('/').split_once('/') {
        // With a slash behind it, or more, the first segment is the account.
        Some((account, rest)) if is_account(account) && !rest.contains('/') => rest,
        Some(_) => return Err(Refusal::bad_address()),
        None if is_account(rest.trim_end_matches('/')) && matches!(comp, Some("properties" | "stats")) => "",
        None => rest.trim_end_matches('/'),
    };
    match (segment, comp) {
        ("", Some("properties")) => return Ok(Endpoint::Service { what: ServicePart::Properties }),
        ("", Some("stats")) => return Ok(Endpoint::Service { what: ServicePart::Stats }),
        ("", _) => return Err(Refusal::bad_address()),
        _ => {}
    }
    let text = decode(segment)?;
    let (name, keys) = split(&text)?;
    // No table has such a name, and the service says so in two ways.
    if name.contains('/') {
        return Err(if keys.is_some() { Refusal::invalid(ONE_INPUT) } else { Refusal::bad_address() });
    }
    match (name, keys, comp) {
        (TABLES, None, None) => Ok(Endpoint::Tables),
        (TABLES, Some(keys), None) => {
            let keys = keys.strip_prefix("TableName=").unwrap_or(keys);
            let (table, rest) = quoted(keys)?;
            if rest.is_empty() {
                Ok(Endpoint::Table { table: named(&table)? })
            } else {
                Err(Refusal::bad_address())
            }
        }
        (BATCH, None, None) => Ok(Endpoint::Batch),
        ("", ..) => Err(Refusal::bad_address()),
        (name, None, Some("acl")) => Ok(Endpoint::Acl { table: named(name)? }),
        (name, None, None) => Ok(Endpoint::Entities { table: named(name)? }),
        (name, Some(keys), None) => {
            let (partition_key, row_key) = entity_key(keys)?;
            Ok(Endpoint::Entity { table: named(name)?, partition_key, row_key })
        }
        _ => Err(Refusal::bad_address()),
    }
}

const TABLES: &str = "Tables";
const BATCH: &str = "$batch";

/// What an address names, and the keys behind it. Empty parentheses are as good as none.
fn split(text: &str) -> Result<(&str, Option<&str>), Refusal> {
    if let Some(name) = text.strip_suffix(')').and_then(|text| text.trim_end().strip_suffix('(')) {
        return Ok((name, None));
    }
    let begins_keys = |(place, _): &(usize, &str)| {
        let keys = text[place + 1..].trim_start();
        text[..*place] == *TABLES || keys.starts_with("PartitionKey=") || keys.starts_with("RowKey=")
    };
    let Some((place, _)) = text.match_indices('(').find(begins_keys) else { return Ok((text, None)) };
    let keys = text[place + 1..].strip_suffix(')').ok_or_else(Refusal::bad_address)?;
    Ok((&text[..place], Some(keys.trim())))
}

/// `PartitionKey='…',RowKey='…'`, in either order.
fn entity_key(mut text: &str) -> Result<(String, String), Refusal> {
    let (mut partition_key, mut row_key) = (None, None);
    while !text.is_empty() {
        let (name, rest) = text.split_once('=').ok_or_else(Refusal::bad_address)?;
        let (value, rest) = quoted(rest.trim_start())?;
        let slot = match name.trim() {
            "PartitionKey" => &mut partition_key,
            "RowKey" => &mut row_key,
            _ => return Err(Refusal::bad_address()),
        };
        if slot.replace(value).is_some() {
            return Err(Refusal::bad_address());
        }
        let rest = rest.trim_start();
        text = match rest.strip_prefix(',') {
            Some(rest) if !rest.is_empty() => rest,
            None if rest.is_empty() => rest,
            _ => return Err(Refusal::bad_address()),
        };
    }
    partition_key.zip(row_key).ok_or_else(Refusal::bad_address)
}

/// A quoted text, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), Refusal> {
    let mut rest = text.strip_prefix('\'').ok_or_else(Refusal::bad_address)?;
    let mut value = String::new();
    loop {
        let (piece, after) = rest.split_once('\'').ok_or_else(Refusal::bad_address)?;
        value.push_str(piece);
        match after.strip_prefix('\'') {
            Some(after) => {
                value.push('\'');
                rest = after;
            }
            None => return Ok((value, after)),
        }
    }
}

/// The name of a table in an address. No table has a name with such letters; one that is too long only is not there.
fn named(table: &str) -> Result<String, Refusal> {
    if table.contains(is_wrong) || table.ends_with(' ') {
        Err(Refusal::bad_address())
    } else {
        Ok(table.to_owned())
    }
}

fn is_wrong(letter: char) -> bool {
    matches!(letter, '/' | '\\' | '#' | '?') || letter.is_control()
}

/// What is wrong with the name of a new table.
pub(crate) fn check_table_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() || name.chars().count() > limits::TABLE_NAME_CHARS_MAX {
        return Err(Own::BadTableName.into());
    }
    if let Some(wrong) = name.chars().find(|letter| is_wrong(*letter)) {
        return Err(Refusal::invalid(format!("The table name contains an invalid character {wrong}.")));
    }
    if name.ends_with(' ') {
        return Err(Refusal::invalid("Table name cannot end with a space."));
    }
    if matches!(name, TABLES | BATCH) || !matches!(split(name), Ok((own, None)) if own == name) {
        return Err(Refusal::invalid("The table name means something else in an address."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routed(address: &str) -> Option<Endpoint> {
        let (path, query) =
            address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
        let parameters = Parameters::read(query).expect("well formed");
        route(path, &parameters, |name| name == "acct").ok()
    }

    fn entity(partition_key: &str, row_key: &str) -> Option<Endpoint> {
        let (partition_key, row_key) = (partition_key.to_owned(), row_key.to_owned());
        Some(Endpoint::Entity { table: "t".to_owned(), partition_key, row_key })
    }

    #[test]
    fn addresses_of_both_styles_name_the_same() {
        let entities = Some(Endpoint::Entities { table: "t".to_owned() });
        for prefix in ["", "/acct"] {
            let at = |rest: &str| routed(&format!("{prefix}{rest}"));
            assert_eq!(at("/Tables"), Some(Endpoint::Tables));
            assert_eq!(at("/Tables()"), Some(Endpoint::Tables));
            assert_eq!(at("/Tables('t')"), Some(Endpoint::Table { table: "t".to_owned() }));
            assert_eq!(at("/t"), entities);
            assert_eq!(at("/t()?$top=1"), entities);
            assert_eq!(at("/$batch"), Some(Endpoint::Batch));
            assert_eq!(at("/t?comp=acl"), Some(Endpoint::Acl { table: "t".to_owned() }));
            let what = ServicePart::Properties;
            assert_eq!(at("/?restype=service&comp=properties"), Some(Endpoint::Service { what }));
            assert_eq!(at("/t(PartitionKey='a',RowKey='b')"), entity("a", "b"));
        }
        assert_eq!(routed("/acct?comp=stats"), Some(Endpoint::Service { what: ServicePart::Stats }));
    }

    #[test]
    fn keys_are_unquoted_and_decoded() {
        for (keys, wanted) in [
            ("PartitionKey='A%27%27aaa%22_bbbb2',RowKey='r'", entity("A'aaa\"_bbbb2", "r")),
            ("RowKey='r', PartitionKey='p'", entity("p", "r")),
            ("PartitionKey='a,RowKey=b',RowKey='c)'", entity("a,RowKey=b", "c)")),
            ("PartitionKey='a%2Fb',RowKey='%C3%A9%28'", entity("a/b", "é(")),
            ("PartitionKey='',RowKey=''", entity("", "")),
            ("PartitionKey='(PartitionKey=',RowKey='()'", entity("(PartitionKey=", "()")),
        ] {
            assert_eq!(routed(&format!("/t({keys})")), wanted, "{keys}");
        }
    }

    #[test]
    fn every_name_that_a_table_may_have_can_be_addressed() {
        for name in ["a(b", "a(b)", "a)", "(", "t(x='a')", "Tables2", "tables", "$Batch", "a(b)(c"] {
            assert!(check_table_name(name).is_ok(), "{name}");
            let table = name.to_owned();
            let entities = Some(Endpoint::Entities { table: table.clone() });
            assert_eq!(routed(&format!("/{name}")), entities, "{name}");
            assert_eq!(routed(&format!("/{name}()")), entities, "{name}");
            let quoted = name.replace('\'', "''");
            assert_eq!(
                routed(&format!("/Tables('{quoted}')")),
                Some(Endpoint::Table { table: table.clone() }),
                "{name}"
            );
            assert_eq!(
                routed(&format!("/{name}?comp=acl")),
                Some(Endpoint::Acl { table: table.clone() }),
                "{name}"
            );
            let (partition_key, row_key) = ("p".to_owned(), "r".to_owned());
            let entity = Some(Endpoint::Entity { table, partition_key, row_key });
            assert_eq!(routed(&format!("/{name}(PartitionKey='p',RowKey='r')")), entity, "{name}");
            assert_eq!(routed(&format!("/{name}(RowKey='r', PartitionKey='p')")), entity, "{name}");
        }
        for name in [
            "Tables",
            "$batch",
            "t()",
            "Tables('t')",
            "Tables(",
            "t(PartitionKey='p',RowKey='r')",
            "t(RowKey=",
        ] {
            assert!(check_table_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn other_addresses_are_refused() {
        for address in [
            "/",
            "//",
            "/mytable/Tables",
            "/acct/t/u",
            "/Tables('t",
            "/Tables('t'x)",
            "/Tables(t)",
            "/t(PartitionKey='a')",
            "/t(PartitionKey='a',RowKey='b'",
            "/t(PartitionKey='a',RowKey='b',RowKey='c')",
            "/t(PartitionKey='a',RowKey='b',)",
            "/t(PartitionKey=a,RowKey='b')",
            "/%FF",
            "/%2F",
            "/%2F(PartitionKey='a',RowKey='b')",
            "/Tables('%2F')",
            "/t?comp=else",
            "/Tables('%5C')",
            "/Tables('t%20')",
            "/%23",
            "/a%2Fb(PartitionKey='p',RowKey='r')",
        ] {
            assert_eq!(routed(address), None, "{address}");
        }
    }

    #[test]
    fn names_of_tables_are_checked() {
        for good in ["t", "My Table", "_x", "unicode-ä", &"x".repeat(254)] {
            assert!(check_table_name(good).is_ok(), "{good}");
        }
        for bad in ["", "a/b", "\\", "#", "?", "a ", "a\n", &"x".repeat(255)] {
            assert!(check_table_name(bad).is_err(), "{bad}");
        }
    }
}
