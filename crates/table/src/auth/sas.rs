//! Shared access signatures: rights in an address, signed with a key of the account.
//!
//! One of a table names it, what may be done to its entities, and perhaps between which keys; one of an account names
//! kinds of resources instead.

use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use orrery_gateway::{Keys, Scheme, Signature};

use super::{Act, Shown, invalid, is_within};
use crate::acl::Policy;
use crate::errors::{Own, Refusal};
use crate::filter::{Filter, Literal, Operator};
use crate::limits::SIGNED_HEADER_BYTES_MAX;
use crate::moment;

/// What a signature allows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sas {
    permissions: String,
    reach: Reach,
    /// The first and the last entity; a part of a key that is not named is no limit.
    from: (Option<String>, Option<String>),
    to: (Option<String>, Option<String>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Reach {
    /// Nothing.
    #[default]
    Nowhere,
    /// The entities of a table.
    Table(String),
    /// Resources of these kinds: `s`ervice, `c`ontainers, `o`bjects.
    Account(String),
}

/// Checks a signature and its terms, of which some may be those of a policy that the table has.
pub(super) fn verify(
    keys: &Keys,
    shown: &Shown<'_>,
    policy: impl Fn(&str, &str) -> Option<Policy>,
    now: SystemTime,
) -> Result<Sas, Refusal> {
    let get = |name: &str| shown.parameters.get(name).unwrap_or_default();
    let signature = STANDARD.decode(get("sig")).map_err(|_| wrong())?;
    if get("sig").len() > SIGNED_HEADER_BYTES_MAX {
        return Err(wrong());
    }
    let table = shown.parameters.get("tn");
    let is_signed = |key: &Signature| {
        shown.accounts.iter().any(|account| {
            let lines = match table {
                Some(table) => of_table(account, &table.to_lowercase(), get),
                None => Some(of_account(account, get)),
            };
            let Some(lines) = lines else { return false };
            key.clone().chain_update(lines).verify_slice(&signature).is_ok()
        })
    };
    keys.kind_of(is_signed)
        // A read-only key cannot give what it does not have.
        .filter(|kind| *kind == orrery_gateway::KeyKind::ReadWrite)
        .ok_or_else(wrong)?;
    let own = Policy {
        start: get("st").to_owned(),
        expiry: get("se").to_owned(),
        permissions: get("sp").to_owned(),
    };
    let terms = match (shown.parameters.get("si"), table) {
        (None, _) => own,
        (Some(name), Some(table)) => joined(own, policy(table, name).ok_or_else(wrong)?)?,
        (Some(_), None) => return Err(wrong()),
    };
    check_time(&terms, now)?;
    check_place(shown, get)?;
    let part = |name: &str| shown.parameters.get(name).map(str::to_owned);
    let (from, to) = ((part("spk"), part("srk")), (part("epk"), part("erk")));
    // A row key is a bound within a partition: alone it would bound nothing, though it looks as if it did.
    if [&from, &to].into_iter().any(|(partition_key, row_key)| partition_key.is_none() && row_key.is_some()) {
        return Err(invalid(
            "A row key of the signature needs a partition key: srk needs spk, and erk needs epk.",
        ));
    }
    Ok(Sas {
        permissions: terms.permissions,
        reach: match table {
            Some(table) => Reach::Table(table.to_owned()),
            None if get("ss").contains('t') => Reach::Account(get("srt").to_owned()),
            None => Reach::Nowhere,
        },
        from,
        to,
    })
}

/// The first version of signatures for tables, and those that changed what is signed for one.
const FIRST: &str = "2012-02-12";
const WITH_SERVICE: &str = "2015-02-21";
const WITH_PLACE: &str = "2015-04-05";

/// What is signed for a table; nothing in versions that had no signatures for tables.
fn of_table<'p>(account: &str, table: &str, get: impl Fn(&str) -> &'p str) -> Option<String> {
    let version = get("sv");
    let resource = match version {
        version if version < FIRST => return None,
        version if version < WITH_SERVICE => format!("/{account}/{table}"),
        _ => format!("/table/{account}/{table}"),
    };
    let mut lines = vec![get("sp"), get("st"), get("se"), &resource, get("si")];
    if version >= WITH_PLACE {
        lines.extend([get("sip"), get("spr")]);
    }
    lines.extend([version, get("spk"), get("srk"), get("epk"), get("erk")]);
    Some(lines.join("\n"))
}

/// What is signed for an account.
fn of_account<'p>(account: &str, get: impl Fn(&str) -> &'p str) -> String {
    let mut lines = vec![
        account,
        get("sp"),
        get("ss"),
        get("srt"),
        get("st"),
        get("se"),
        get("sip"),
        get("spr"),
        get("sv"),
    ];
    // From this version on there is a line for the scope of encryption.
    if get("sv") >= "2020-12-06" {
        lines.push(get("ses"));
    }
    lines.join("\n") + "\n"
}

/// What a signature says together with the policy that it names. Neither may say what the other says.
fn joined(own: Policy, stored: Policy) -> Result<Policy, Refusal> {
    let one = |own: String, stored: String| match (own.is_empty(), stored.is_empty()) {
        (false, false) => Err(invalid("A term of the signature is also one of its access policy.")),
        (true, _) => Ok(stored),
        (false, true) => Ok(own),
    };
    Ok(Policy {
        start: one(own.start, stored.start)?,
        expiry: one(own.expiry, stored.expiry)?,
        permissions: one(own.permissions, stored.permissions)?,
    })
}

/// Whether the signature holds now.
fn check_time(terms: &Policy, now: SystemTime) -> Result<(), Refusal> {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = moment::TICKS_TO_1970 + i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX / 2);
    let at = |text: &str| {
        moment::parse(text).ok_or_else(|| invalid("A time in the signature is not a date that can be read."))
    };
    if terms.expiry.is_empty() || at(&terms.expiry)? <= now {
        return Err(invalid("Signature not valid in the specified time frame: it has expired."));
    }
    if !terms.start.is_empty() && at(&terms.start)? > now {
        return Err(invalid("Signature not valid in the specified time frame: it has not begun."));
    }
    Ok(())
}

/// Whether it holds from there, and over this connection.
fn check_place<'p>(shown: &Shown<'_>, get: impl Fn(&str) -> &'p str) -> Result<(), Refusal> {
    if !get("sip").is_empty() && !is_within(shown.peer.remote.ip().to_canonical(), get("sip")) {
        return Err(invalid("The signature is for another address."));
    }
    match get("spr") {
        "" | "https,http" | "http,https" => Ok(()),
        "https" if shown.peer.scheme == Scheme::Https => Ok(()),
        "https" => Err(invalid("The signature is for HTTPS only.")),
        // What its maker meant to allow is not known, so nothing is.
        _ => Err(invalid("The protocols of the signature, spr, are neither \"https\" nor \"https,http\".")),
    }
}

fn wrong() -> Refusal {
    Own::AuthenticationFailed(
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly \
         including the signature."
            .into(),
    )
    .into()
}

impl Sas {
    pub fn allows(&self, act: Act, table: Option<&str>) -> bool {
        let has = |letter: char| self.permissions.contains(letter);
        let (kind, is_allowed) = match act {
            Act::Read | Act::Query => ('o', has('r')),
            Act::Add => ('o', has('a')),
            Act::Update => ('o', has('u')),
            Act::Upsert => ('o', has('a') && has('u')),
            Act::Delete => ('o', has('d')),
            Act::CreateTable => ('c', has('c') || has('w')),
            Act::DeleteTable => ('c', has('d')),
            Act::ListTables => ('c', has('l')),
            Act::ReadService => ('s', has('r')),
            Act::WriteService => ('s', has('w')),
            // Only a key of the account may give and take rights.
            Act::ReadPolicies | Act::WritePolicies => return false,
            // Asked for by each of its operations instead.
            Act::Transact => return false,
        };
        is_allowed
            && match &self.reach {
                Reach::Nowhere => false,
                Reach::Table(own) => {
                    kind == 'o' && table.is_some_and(|table| table.eq_ignore_ascii_case(own))
                }
                Reach::Account(kinds) => kinds.contains(kind),
            }
    }

    pub fn covers(&self, partition_key: &str, row_key: &str) -> bool {
        let key = |part: &(Option<String>, Option<String>)| (part.0.clone(), part.1.clone());
        let (from, to) = (key(&self.from), key(&self.to));
        let begins = from.0.is_none_or(|first| {
            partition_key > first.as_str()
                || partition_key == first && from.1.is_none_or(|first| row_key >= first.as_str())
        });
        let ends = to.0.is_none_or(|last| {
            partition_key < last.as_str()
                || partition_key == last && to.1.is_none_or(|last| row_key <= last.as_str())
        });
        begins && ends
    }

    /// The same as a condition.
    pub fn restriction(&self) -> Option<Filter> {
        let bounds = [
            bound(&self.from, Operator::Greater, Operator::GreaterOrEqual),
            bound(&self.to, Operator::Less, Operator::LessOrEqual),
        ];
        let mut bounds: Vec<Filter> = bounds.into_iter().flatten().collect();
        match bounds.len() {
            0 | 1 => bounds.pop(),
            _ => Some(Filter::And(bounds)),
        }
    }
}

fn bound(key: &(Option<String>, Option<String>), beyond: Operator, within: Operator) -> Option<Filter> {
    let compare = |property: &str, operator, text: &String| Filter::Compare {
        property: property.to_owned(),
        operator,
        literal: Literal::String(text.clone()),
    };
    let partition_key = key.0.as_ref()?;
    Some(match &key.1 {
        None => compare("PartitionKey", within, partition_key),
        Some(row_key) => Filter::Or(vec![
            compare("PartitionKey", beyond, partition_key),
            Filter::And(vec![
                compare("PartitionKey", Operator::Equal, partition_key),
                compare("RowKey", within, row_key),
            ]),
        ]),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::Method;
    use orrery_gateway::Peer;
    use orrery_gateway::keys::prepare;
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

    use super::*;
    use crate::headers::Headers;
    use crate::parameters::Parameters;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn sign(text: &str) -> String {
        let signature =
            STANDARD.encode(prepare(KEY).expect("a key").chain_update(text).finalize().into_bytes());
        utf8_percent_encode(&signature, NON_ALPHANUMERIC).to_string()
    }

    /// At 2022-05-06T00:47:47Z, from 10.0.0.7.
    fn read(query: &str) -> Result<Sas, u16> {
        read_with(query, |_, _| None)
    }

    fn read_with(query: &str, policy: impl Fn(&str, &str) -> Option<Policy>) -> Result<Sas, u16> {
        let parameters = Parameters::read(Some(query)).expect("well formed");
        let peer = Peer::of(Scheme::Http, ([10, 0, 0, 7], 1).into());
        let shown = Shown {
            method: &Method::GET,
            path: "/t",
            parameters: &parameters,
            headers: &Headers::default(),
            peer,
            accounts: &["other", "acct"],
        };
        let now = UNIX_EPOCH + Duration::from_secs(1_651_798_067);
        verify(&Keys::new([KEY], []).expect("a key"), &shown, policy, now)
            .map_err(|refusal| refusal.wire().status.as_u16())
    }

    fn of_my_table(terms: [&str; 11]) -> String {
        let [sp, st, se, sip, spr, spk, srk, epk, erk, name, account] = terms;
        let text = format!(
            "{sp}\n{st}\n{se}\n/table/{account}/{}\n\n{sip}\n{spr}\n2019-02-02\n{spk}\n{srk}\n{epk}\n{erk}",
            name.to_lowercase()
        );
        format!(
            "sp={sp}&st={st}&se={se}&sip={sip}&spr={spr}&spk={spk}&srk={srk}&epk={epk}&erk={erk}&tn={name}&sv=2019-02-02&sig={}",
            sign(&text)
        )
    }

    #[test]
    fn a_signature_of_a_table_opens_its_entities_as_far_as_it_says() {
        let sas = read(&of_my_table(["ra", "", "2030-01-01", "", "", "", "", "", "", "MyTable", "acct"]))
            .expect("valid");
        assert!(sas.allows(Act::Read, Some("MyTable")) && sas.allows(Act::Add, Some("mytable")));
        for act in [Act::Update, Act::Upsert, Act::Delete, Act::ListTables, Act::CreateTable] {
            assert!(!sas.allows(act, Some("MyTable")), "{act:?}");
        }
        assert!(!sas.allows(Act::Read, Some("Other")) && !sas.allows(Act::Read, None));
    }

    #[test]
    fn ranges_of_keys_hold() {
        let sas = read(&of_my_table(["r", "", "2030-01-01", "", "", "b", "5", "d", "5", "t", "acct"]))
            .expect("valid");
        for (partition_key, row_key, wanted) in [
            ("a", "9", false),
            ("b", "4", false),
            ("b", "5", true),
            ("c", "", true),
            ("d", "5", true),
            ("d", "6", false),
            ("e", "", false),
        ] {
            assert_eq!(sas.covers(partition_key, row_key), wanted, "{partition_key} {row_key}");
        }
        assert!(matches!(sas.restriction(), Some(Filter::And(list)) if list.len() == 2));
    }

    #[test]
    fn a_row_key_without_its_partition_key_is_no_bound() {
        let ranged = |[spk, srk, epk, erk]: [&'static str; 4]| {
            read(&of_my_table(["r", "", "2030-01-01", "", "", spk, srk, epk, erk, "t", "acct"])).err()
        };
        for keys in [["", "5", "", ""], ["", "", "", "5"], ["", "5", "d", "5"], ["b", "5", "", "5"]] {
            assert_eq!(ranged(keys), Some(403), "{keys:?}");
        }
        for keys in [["b", "5", "", ""], ["", "", "d", "5"], ["b", "", "d", ""]] {
            assert_eq!(ranged(keys), None, "{keys:?}");
        }
    }

    #[test]
    fn each_version_signs_what_was_documented_for_it() {
        let of = |version: &str, text: &str| {
            let signed = sign(text);
            read(&format!("sp=r&se=2030-01-01&spk=b&srk=5&epk=d&erk=5&tn=People&sv={version}&sig={signed}"))
        };
        let oldest = |version: &str| format!("r\n\n2030-01-01\n/acct/people\n\n{version}\nb\n5\nd\n5");
        let with_service = |version: &str| oldest(version).replace("/acct", "/table/acct");
        let today =
            |version: &str| format!("r\n\n2030-01-01\n/table/acct/people\n\n\n\n{version}\nb\n5\nd\n5");
        let forms: [&dyn Fn(&str) -> String; 3] = [&oldest, &with_service, &today];
        for (version, own) in [
            ("2012-02-12", Some(0)),
            ("2013-08-15", Some(0)),
            ("2014-02-14", Some(0)),
            ("2015-02-21", Some(1)),
            ("2015-04-05", Some(2)),
            ("2026-01-01", Some(2)),
            ("2011-08-18", None),
            ("", None),
        ] {
            for (place, form) in forms.iter().enumerate() {
                let sas = of(version, &form(version));
                assert_eq!(sas.is_ok(), own == Some(place), "{version} {place}");
                let Ok(sas) = sas else { continue };
                assert!(sas.covers("b", "5") && !sas.covers("b", "4") && !sas.covers("e", "1"), "{version}");
            }
        }
    }

    #[test]
    fn signatures_that_do_not_hold_are_refused() {
        let valid = ["r", "", "2030-01-01", "", "", "", "", "", "", "t", "acct"];
        assert!(read(&of_my_table(valid)).is_ok());
        let with = |place: usize, value: &'static str| {
            let mut terms = valid;
            terms[place] = value;
            read(&of_my_table(terms)).err()
        };
        assert_eq!(with(2, "2020-01-01"), Some(403), "expired");
        assert_eq!(with(2, ""), Some(403), "no end");
        assert_eq!(with(1, "2029-01-01"), Some(403), "not begun");
        assert_eq!(with(3, "10.0.0.8"), Some(403), "another address");
        assert_eq!(with(3, "10.0.0.1-10.0.0.9"), None, "a range of addresses");
        assert_eq!(with(4, "https"), Some(403), "not over TLS");
        assert_eq!(with(4, "https,http"), None, "over either");
        for unknown in ["http", "ftp", "HTTPS", "https,", "https,ftp"] {
            assert_eq!(with(4, unknown), Some(403), "{unknown}");
        }
        assert_eq!(with(10, "stranger"), Some(403), "another account");
        let query = of_my_table(valid);
        assert_eq!(read(&query.replace("sp=r", "sp=raud")).err(), Some(403), "more than was signed");
        assert_eq!(read(&query.replace("tn=t", "tn=u")).err(), Some(403), "another table");
        assert_eq!(read("sig=x").err(), Some(403));
        assert_eq!(read(&format!("si=policy&{query}")).err(), Some(403), "a policy that was not signed");
    }

    #[test]
    fn a_policy_says_what_the_signature_leaves_open() {
        let query = |sp: &str, se: &str| {
            let text = format!("{sp}\n\n{se}\n/table/acct/t\nold\n\n\n2019-02-02\n\n\n\n");
            format!("sp={sp}&se={se}&si=old&tn=t&sv=2019-02-02&sig={}", sign(&text))
        };
        let stored = |start: &'static str, expiry: &'static str, permissions: &'static str| {
            move |table: &str, name: &str| {
                let [start, expiry, permissions] = [start, expiry, permissions].map(str::to_owned);
                (table == "t" && name == "old").then_some(Policy { start, expiry, permissions })
            }
        };
        let sas = read_with(&query("", ""), stored("2020-01-01", "2030-01-01", "r")).expect("valid");
        assert!(sas.allows(Act::Read, Some("t")) && !sas.allows(Act::Add, Some("t")));
        let sas = read_with(&query("a", ""), stored("", "2030-01-01", "")).expect("valid");
        assert!(!sas.allows(Act::Read, Some("t")) && sas.allows(Act::Add, Some("t")));
        for (sp, se, policy) in [
            ("", "", stored("2029-01-01", "2030-01-01", "r")),
            ("", "", stored("", "2021-01-01", "r")),
            ("", "", stored("", "", "r")),
            ("r", "2030-01-01", stored("", "2030-01-01", "")),
            ("r", "2030-01-01", stored("", "", "r")),
        ] {
            assert_eq!(read_with(&query(sp, se), policy).err(), Some(403), "{sp} {se}");
        }
        assert_eq!(read(&query("r", "2030-01-01")).err(), Some(403), "no such policy");
    }

    #[test]
    fn a_signature_of_the_account_opens_kinds_of_resources() {
        let signed = sign("acct\nrl\nt\nco\n\n2030-01-01\n\n\n2019-02-02\n");
        let sas =
            read(&format!("sp=rl&ss=t&srt=co&se=2030-01-01&sv=2019-02-02&sig={signed}")).expect("valid");
        assert!(sas.allows(Act::Read, Some("any")) && sas.allows(Act::ListTables, None));
        assert!(!sas.allows(Act::ReadService, None) && !sas.allows(Act::CreateTable, Some("t")));
        let signed = sign("acct\nr\nb\nsco\n\n2030-01-01\n\n\n2019-02-02\n");
        let sas =
            read(&format!("sp=r&ss=b&srt=sco&se=2030-01-01&sv=2019-02-02&sig={signed}")).expect("valid");
        assert!(!sas.allows(Act::Read, Some("t")), "another service");
    }
}
