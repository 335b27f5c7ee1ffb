//! Paths to endpoints.
//!
//! A path is a list of type and name in turns: `/dbs/{db}/colls/{coll}/docs/{id}`. Empty segments are skipped,
//! so a trailing or doubled slash changes nothing. Names are percent-decoded after the path is cut, because
//! a name may contain an encoded slash. Whether a name is an id or a RID is decided later, by the catalog.

use std::borrow::Cow;

use http::Uri;
use orrery_cluster::ChildKind;

use crate::errors::{Own, Refusal};

/// Bytes of a path: three names of 255 characters and an item id, all percent-encoded, fit.
const PATH_BYTES_MAX: usize = 16 * 1024;
/// The longest path of the protocol is that of an attachment.
const SEGMENTS_MAX: usize = 8;

/// Which resource or operation a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint<'p> {
    Account,
    Databases,
    Database {
        database: Cow<'p, str>,
    },
    Containers {
        database: Cow<'p, str>,
    },
    Container {
        database: Cow<'p, str>,
        container: Cow<'p, str>,
    },
    Items {
        database: Cow<'p, str>,
        container: Cow<'p, str>,
    },
    Item {
        database: Cow<'p, str>,
        container: Cow<'p, str>,
        item: Cow<'p, str>,
    },
    Ranges {
        database: Cow<'p, str>,
        container: Cow<'p, str>,
    },
    Conflicts {
        database: Cow<'p, str>,
        container: Cow<'p, str>,
        conflict: Option<Cow<'p, str>>,
    },
    /// `operations/partitionkeydelete`: all items of one logical partition.
    KeyDelete {
        database: Cow<'p, str>,
        container: Cow<'p, str>,
    },
    /// Users or client encryption keys.
    DatabaseChildren {
        kind: ChildKind,
        database: Cow<'p, str>,
    },
    DatabaseChild {
        kind: ChildKind,
        database: Cow<'p, str>,
        child: Cow<'p, str>,
    },
    Permissions {
        database: Cow<'p, str>,
        user: Cow<'p, str>,
    },
    Permission {
        database: Cow<'p, str>,
        user: Cow<'p, str>,
        permission: Cow<'p, str>,
    },
    /// Stored procedures, triggers or functions.
    Scripts {
        kind: ChildKind,
        database: Cow<'p, str>,
        container: Cow<'p, str>,
    },
    Script {
        kind: ChildKind,
        database: Cow<'p, str>,
        container: Cow<'p, str>,
        script: Cow<'p, str>,
    },
    Offers,
    Offer {
        offer: Cow<'p, str>,
    },
    /// Definitions or assignments of roles.
    Roles {
        kind: ChildKind,
    },
    Role {
        kind: ChildKind,
        role: Cow<'p, str>,
    },
    /// Part of the protocol, not of this release; the text names it.
    Unsupported {
        feature: &'static str,
    },
}

/// The kinds of endpoints, without what they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RouteKind {
    Account,
    Databases,
    Database,
    Containers,
    Container,
    Items,
    Item,
    Ranges,
    Conflicts,
    Conflict,
    KeyDelete,
    Users,
    User,
    EncryptionKeys,
    EncryptionKey,
    Permissions,
    Permission,
    Procedures,
    Procedure,
    Triggers,
    Trigger,
    Functions,
    Function,
    Offers,
    Offer,
    Roles,
    Role,
    Unsupported,
}

impl RouteKind {
    /// All of them; tests go through this list, and the assertion below keeps it whole.
    #[cfg_attr(not(test), allow(dead_code))]
    pub const ALL: [RouteKind; RouteKind::Unsupported as usize + 1] = {
        use RouteKind::*;
        [
            Account,
            Databases,
            Database,
            Containers,
            Container,
            Items,
            Item,
            Ranges,
            Conflicts,
            Conflict,
            KeyDelete,
            Users,
            User,
            EncryptionKeys,
            EncryptionKey,
            Permissions,
            Permission,
            Procedures,
            Procedure,
            Triggers,
            Trigger,
            Functions,
            Function,
            Offers,
            Offer,
            Roles,
            Role,
            Unsupported,
        ]
    };
}

impl Endpoint<'_> {
    pub fn kind(&self) -> RouteKind {
        match self {
            Endpoint::Account => RouteKind::Account,
            Endpoint::Databases => RouteKind::Databases,
            Endpoint::Database { .. } => RouteKind::Database,
            Endpoint::Containers { .. } => RouteKind::Containers,
            Endpoint::Container { .. } => RouteKind::Container,
            Endpoint::Items { .. } => RouteKind::Items,
            Endpoint::Item { .. } => RouteKind::Item,
            Endpoint::Ranges { .. } => RouteKind::Ranges,
            Endpoint::Conflicts { conflict: None, .. } => RouteKind::Conflicts,
            Endpoint::Conflicts { .. } => RouteKind::Conflict,
            Endpoint::KeyDelete { .. } => RouteKind::KeyDelete,
            Endpoint::DatabaseChildren { kind: ChildKind::User, .. } => RouteKind::Users,
            Endpoint::DatabaseChildren { .. } => RouteKind::EncryptionKeys,
            Endpoint::DatabaseChild { kind: ChildKind::User, .. } => RouteKind::User,
            Endpoint::DatabaseChild { .. } => RouteKind::EncryptionKey,
            Endpoint::Permissions { .. } => RouteKind::Permissions,
            Endpoint::Permission { .. } => RouteKind::Permission,
            Endpoint::Scripts { kind: ChildKind::Procedure, .. } => RouteKind::Procedures,
            Endpoint::Scripts { kind: ChildKind::Trigger, .. } => RouteKind::Triggers,
            Endpoint::Scripts { .. } => RouteKind::Functions,
            Endpoint::Script { kind: ChildKind::Procedure, .. } => RouteKind::Procedure,
            Endpoint::Script { kind: ChildKind::Trigger, .. } => RouteKind::Trigger,
            Endpoint::Script { .. } => RouteKind::Function,
            Endpoint::Offers => RouteKind::Offers,
            Endpoint::Offer { .. } => RouteKind::Offer,
            Endpoint::Roles { .. } => RouteKind::Roles,
            Endpoint::Role { .. } => RouteKind::Role,
            Endpoint::Unsupported { .. } => RouteKind::Unsupported,
        }
    }
}

/// A path in pieces: what it names, and what a client signs of it.
#[derive(Debug)]
pub(crate) struct Route<'p> {
    pub endpoint: Endpoint<'p>,
    pub signed: Signed<'p>,
}

/// The part of a path that the signature covers.
#[derive(Debug, Default)]
pub(crate) struct Signed<'p> {
    /// The type line; some clients sign another word for the same resource.
    pub resource_type: &'p str,
    pub other_type: Option<&'static str>,
    segments: [Segment<'p>; SEGMENTS_MAX],
    len: usize,
}

/// One piece of a path as sent and as meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment<'p> {
    pub raw: &'p str,
    pub text: Cow<'p, str>,
}

impl<'p> Signed<'p> {
    /// A link that is signed as it was sent, whatever it is made of.
    pub fn whole(resource_type: &'p str, link: &'p str) -> Signed<'p> {
        let mut segments: [Segment<'p>; SEGMENTS_MAX] = Default::default();
        segments[0] = Segment { raw: link, text: Cow::Borrowed(link) };
        Signed { resource_type, other_type: None, segments, len: 1 }
    }

    /// The segments of the resource link, types included.
    pub fn link(&self) -> &[Segment<'p>] {
        &self.segments[..self.len]
    }
}

/// Reads a path; anything malformed is refused, and nothing allocates unless a name is encoded.
pub(crate) fn route(path: &str) -> Result<Route<'_>, Refusal> {
    if path.len() > PATH_BYTES_MAX {
        return Err(Refusal::bad_request("The path of the request is too long."));
    }
    let mut segments: [Segment<'_>; SEGMENTS_MAX] = Default::default();
    let mut count = 0;
    for raw in path.split('/').filter(|segment| !segment.is_empty()) {
        let slot = segments.get_mut(count).ok_or(Own::NoSuchPath)?;
        *slot = Segment { raw, text: decode(raw)? };
        count += 1;
    }
    let endpoint = endpoint(&segments[..count])?;
    // What was not encoded has nothing in it that needs a look.
    if let Endpoint::Item { item: Cow::Owned(name), .. } | Endpoint::Script { script: Cow::Owned(name), .. } =
        &endpoint
    {
        check_reachable(name)?;
    }
    Ok(Route { endpoint, signed: sign(segments, count) })
}

/// The path of a request as its client means it. Some clients send a question mark in the name of an item as it is (JavaScript's
/// `encodeURI` lets it stand), and sign it as a part of the name. No endpoint of an item takes a query, so what stands
/// behind the question mark belongs to the name.
pub(crate) fn path_of(uri: &Uri) -> &str {
    match uri.path_and_query() {
        Some(whole) if whole.query().is_some() && is_item(whole.path()) => whole.as_str(),
        _ => uri.path(),
    }
}

fn is_item(path: &str) -> bool {
    let mut segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.nth(4) == Some("docs") && segments.count() == 1
}

/// Refuses names that the service's gateway does not pass on as they were signed. It refuses control characters, decodes
/// twice, and cuts what it takes for the end of a path: the signature then does not fit what is left. Acting on the
/// name all the same would make a program work here and fail there; acting on what is left would be worse. No item and
/// no script has a slash in its name.
fn check_reachable(name: &str) -> Result<(), Refusal> {
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Own::InvalidUrl.into());
    }
    if name.contains(['/', '\\']) {
        return Err(Own::NoSuchPath.into());
    }
    if name.ends_with(' ') || name.contains('#') || is_encoded(name) {
        return Err(Own::Unauthorized(UNREACHABLE.into()).into());
    }
    Ok(())
}

const UNREACHABLE: &str = "The input authorization token can't serve the request. The id in the path ends with a space, \
     contains '#', or looks percent-encoded, so that it is not what was signed once the path is read. \
     Address the resource by its _rid, as its _self link does, or name the id in a batch.";

fn is_encoded(name: &str) -> bool {
    let is_escape = |bytes: &[u8]| bytes[0] == b'%' && bytes[1..].iter().all(u8::is_ascii_hexdigit);
    name.as_bytes().windows(3).any(is_escape)
}

/// Whether the path is where a client in direct mode asks for the addresses of replicas: `//addresses/?$resolveFor=…`.
/// It signs the resource that it wants resolved and not this path, so this is asked before anything else.
pub(crate) fn is_direct_mode(path: &str) -> bool {
    let first = path.split('/').find(|segment| !segment.is_empty());
    first.is_some_and(|segment| segment.eq_ignore_ascii_case("addresses"))
}

fn decode(raw: &str) -> Result<Cow<'_, str>, Refusal> {
    if !raw.as_bytes().contains(&b'%') {
        return Ok(Cow::Borrowed(raw));
    }
    percent_encoding::percent_decode_str(raw)
        .decode_utf8()
        .map_err(|_| Refusal::bad_request("The path of the request is not valid UTF-8 after decoding."))
}

fn endpoint<'p>(segments: &[Segment<'p>]) -> Result<Endpoint<'p>, Refusal> {
    let name = |place: usize| segments[place].text.clone();
    let word = |place: usize| segments.get(place).map_or("", |segment| segment.raw);
    Ok(match (word(0), segments.len()) {
        (_, 0) => Endpoint::Account,
        ("dbs", 1) => Endpoint::Databases,
        ("dbs", 2) => Endpoint::Database { database: name(1) },
        ("dbs", count) => match (word(2), count) {
            ("colls", 3) => Endpoint::Containers { database: name(1) },
            ("colls", 4) => Endpoint::Container { database: name(1), container: name(3) },
            ("colls", _) => in_container(segments)?,
            ("users" | "clientencryptionkeys", 3 | 4) => in_database(segments),
            ("users", 5) if word(4) == "permissions" => {
                Endpoint::Permissions { database: name(1), user: name(3) }
            }
            ("users", 6) if word(4) == "permissions" => {
                Endpoint::Permission { database: name(1), user: name(3), permission: name(5) }
            }
            _ => return Err(Own::NoSuchPath.into()),
        },
        ("offers", 1) => Endpoint::Offers,
        ("offers", 2) => Endpoint::Offer { offer: name(1) },
        // What some clients make of the link of an offer that they cannot read.
        ("offers", 3) if word(1) == "offers" => {
            return Err(Refusal::bad_request("The path of the request names offers twice and no offer."));
        }
        ("roledefinitions" | "roleassignments", 1 | 2) => {
            let kind = match word(0) {
                "roledefinitions" => ChildKind::RoleDefinition,
                _ => ChildKind::RoleAssignment,
            };
            match segments.get(1) {
                None => Endpoint::Roles { kind },
                Some(role) => Endpoint::Role { kind, role: role.text.clone() },
            }
        }
        ("media", _) => Endpoint::Unsupported { feature: "Attachment media" },
        ("operations", _) => Endpoint::Unsupported { feature: "Distributed transactions (operations)" },
        ("partitions" | "topology" | "xpreplicatoraddreses", _) => {
            Endpoint::Unsupported { feature: "Direct connection mode" }
        }
        _ => return Err(Own::NoSuchPath.into()),
    })
}

/// What a database has beside containers: three or four segments.
fn in_database<'p>(segments: &[Segment<'p>]) -> Endpoint<'p> {
    let database = segments[1].text.clone();
    let kind = if segments[2].raw == "users" { ChildKind::User } else { ChildKind::EncryptionKey };
    match segments.get(3) {
        None => Endpoint::DatabaseChildren { kind, database },
        Some(child) => Endpoint::DatabaseChild { kind, database, child: child.text.clone() },
    }
}

/// What lives in a container: at least five segments.
fn in_container<'p>(segments: &[Segment<'p>]) -> Result<Endpoint<'p>, Refusal> {
    let (database, container) = (segments[1].text.clone(), segments[3].text.clone());
    Ok(match (segments[4].raw, segments.len()) {
        ("docs", 5) => Endpoint::Items { database, container },
        ("docs", 6) => Endpoint::Item { database, container, item: segments[5].text.clone() },
        ("docs", 7 | 8) if segments[6].raw == "attachments" => {
            Endpoint::Unsupported { feature: "Attachments" }
        }
        ("pkranges", 5) => Endpoint::Ranges { database, container },
        ("conflicts", 5) => Endpoint::Conflicts { database, container, conflict: None },
        ("conflicts", 6) => {
            Endpoint::Conflicts { database, container, conflict: Some(segments[5].text.clone()) }
        }
        ("operations", 6) if segments[5].raw == "partitionkeydelete" => {
            Endpoint::KeyDelete { database, container }
        }
        ("operations", _) => Endpoint::Unsupported { feature: "Container operations" },
        ("sprocs" | "triggers" | "udfs", 5 | 6) => {
            let kind = match segments[4].raw {
                "sprocs" => ChildKind::Procedure,
                "triggers" => ChildKind::Trigger,
                _ => ChildKind::Function,
            };
            match segments.get(5) {
                None => Endpoint::Scripts { kind, database, container },
                Some(script) => Endpoint::Script { kind, database, container, script: script.text.clone() },
            }
        }
        ("schemas", _) => Endpoint::Unsupported { feature: "Schemas" },
        ("systemdocuments", _) => Endpoint::Unsupported { feature: "System documents" },
        _ => return Err(Own::NoSuchPath.into()),
    })
}

/// The segments of a link as resources carry it, in which nothing is encoded.
pub(crate) fn link_segments(link: &str) -> Option<Vec<Segment<'_>>> {
    if link.len() > PATH_BYTES_MAX {
        return None;
    }
    let segments = link.split('/').filter(|segment| !segment.is_empty());
    let segments: Vec<Segment<'_>> =
        segments.take(SEGMENTS_MAX + 1).map(|raw| Segment { raw, text: Cow::Borrowed(raw) }).collect();
    (segments.len() <= SEGMENTS_MAX).then_some(segments)
}

/// The route of a request that names its resource word by word and not by a path: types and names in turns, in which
/// nothing is encoded. Such a name may hold whatever the resource's own may.
pub(crate) fn route_of<'p>(words: &[&'p str]) -> Result<Route<'p>, Refusal> {
    let mut segments: [Segment<'p>; SEGMENTS_MAX] = Default::default();
    for (slot, word) in segments.iter_mut().zip(words) {
        *slot = Segment { raw: word, text: Cow::Borrowed(word) };
    }
    let endpoint = endpoint(&segments[..words.len()])?;
    Ok(Route { endpoint, signed: sign(segments, words.len()) })
}

/// What a link names.
pub(crate) fn link_endpoint<'p>(segments: &[Segment<'p>]) -> Option<Endpoint<'p>> {
    endpoint(segments).ok()
}

/// A feed signs its owner's link, a resource its own; operations on a container sign the container.
fn sign<'p>(segments: [Segment<'p>; SEGMENTS_MAX], count: usize) -> Signed<'p> {
    if count >= 6 && segments[4].raw == "operations" {
        return Signed { resource_type: "colls", other_type: Some("partitionkey"), segments, len: 4 };
    }
    let (resource_type, len) = match count {
        0 => ("", 0),
        odd if odd % 2 == 1 => (segments[odd - 1].raw, odd - 1),
        even => (segments[even - 2].raw, even),
    };
    Signed { resource_type, other_type: None, segments, len }
}

#[cfg(test)]
mod tests;
