//! What scripts are told of their container, and the links that they use: of it, and of items in it.

use orrery_cluster::store::{ItemId, Target};
use orrery_cluster::{Container, Rid, ScriptCollection, ScriptLink as Link, ScriptQuota};

use crate::respond::ResourceUsage;

pub(super) fn collection(container: &Container) -> ScriptCollection {
    let usage = ResourceUsage::Container(container.usage());
    let mut used = String::new();
    usage.push(&mut used).expect("writing to a string cannot fail");
    ScriptCollection {
        self_link: format!("dbs/{}/colls/{}/", container.database, container.resource.rid),
        alt_link: format!("dbs/{}/colls/{}", container.database_id, container.resource.id),
        quota: ScriptQuota { most: usage.quota().into(), used },
    }
}

/// What a link names; nothing if it is outside of the container. Links are made of names or of rids throughout.
pub(super) fn resolve(container: &Container, link: &str) -> Option<Link> {
    let link = link.trim_matches('/');
    let by_name = [container.database_id.as_str(), container.resource.id.as_str()];
    if let Some(rest) = within(link, by_name) {
        return match rest {
            "" => Some(Link::Container),
            // An id has no slash, but for the one that links may end with.
            rest => ItemId::new(rest.strip_prefix("/docs/")?).ok().map(|id| Link::Item(Target::Id(id))),
        };
    }
    let (database, rid) = (container.database.to_string(), container.resource.rid.to_string());
    match within(link, [database.as_str(), rid.as_str()])? {
        "" => Some(Link::Container),
        rest => {
            let item = Rid::parse(rest.strip_prefix("/docs/")?)?;
            let is_inside = item.container_part() == Some(container.resource.rid);
            item.child_number().filter(|_| is_inside).map(|number| Link::Item(Target::Rid(number)))
        }
    }
}

/// What follows the container in a link.
fn within<'l>(link: &'l str, [database, container]: [&str; 2]) -> Option<&'l str> {
    let rest = link.strip_prefix("dbs/")?.strip_prefix(database)?;
    let rest = rest.strip_prefix("/colls/")?.strip_prefix(container)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}
