//! Resources below the account, a database, a container or a user: create, upsert, read, replace, delete, list, query.
//!
//! One implementation serves all kinds. What differs between them is in [`shape`]: the words of paths and feeds,
//! what a body must have, and what the server adds to it.

mod shape;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode};
use orrery_cluster::{Catalog, Child, ChildKind, Container, Database, Receipt, Rid, Served, limits, ru};

use crate::address::{self, ContainerAddress, rid_of_length};
use crate::call::Call;
use crate::databases::{if_match, is_current};
use crate::envelope::{self, push_number, push_text};
use crate::errors::{Own, Refusal};
use crate::headers::names;
use crate::resource_query;
use crate::respond::Reply;

pub(crate) use shape::segment;

/// The children of one kind below one owner.
pub(crate) struct Branch {
    pub kind: ChildKind,
    pub owner: Owner,
    /// The client named the owner by RID, and names the child so too.
    pub by_rid: bool,
}

pub(crate) enum Owner {
    Database(Arc<Database>),
    Container(Arc<Container>),
    User(Arc<Database>, Arc<Child>),
    Account,
}

impl Branch {
    /// Scripts of a container.
    pub fn in_container(kind: ChildKind, at: &ContainerAddress) -> Branch {
        Branch { kind, owner: Owner::Container(at.container.clone()), by_rid: at.by_rid }
    }

    /// What a database has beside containers.
    pub fn in_database(catalog: &Catalog, kind: ChildKind, database: &str) -> Result<Branch, Refusal> {
        let (database, by_rid) = address::find_database(catalog, database).ok_or(Own::OwnerNotFound)?;
        Ok(Branch { kind, owner: Owner::Database(database.clone()), by_rid })
    }

    /// Roles, which belong to the account.
    pub fn in_account(kind: ChildKind) -> Branch {
        Branch { kind, owner: Owner::Account, by_rid: false }
    }

    /// The permissions of a user.
    pub fn of_user(catalog: &Catalog, database: &str, user: &str) -> Result<Branch, Refusal> {
        let users = Branch::in_database(catalog, ChildKind::User, database)?;
        let user = users.find(catalog, user).ok_or(Own::OwnerNotFound)?;
        let Owner::Database(database) = users.owner else { return Err(Own::OwnerNotFound.into()) };
        Ok(Branch { kind: ChildKind::Permission, owner: Owner::User(database, user), by_rid: users.by_rid })
    }

    pub fn owner_rid(&self) -> Rid {
        match &self.owner {
            Owner::Database(database) => database.resource.rid,
            Owner::Container(container) => container.resource.rid,
            Owner::User(_, user) => user.resource.rid,
            Owner::Account => Rid::ACCOUNT,
        }
    }

    /// The child that the text names, as the rest of the path is named: by id or by RID.
    pub fn find(&self, catalog: &Catalog, text: &str) -> Option<Arc<Child>> {
        let owner = self.owner_rid();
        if !self.by_rid {
            return catalog.child(self.kind, owner, text).cloned();
        }
        let rid = [8, 16].into_iter().find_map(|bytes| rid_of_length(text, bytes))?;
        catalog.child_by_rid(self.kind, owner, rid).cloned()
    }

    /// The link of the owner, made of RIDs.
    fn link(&self) -> String {
        match &self.owner {
            Owner::Database(database) => format!("dbs/{}/", database.resource.rid),
            Owner::Container(container) => {
                format!("dbs/{}/colls/{}/", container.database, container.resource.rid)
            }
            Owner::Account => String::new(),
            Owner::User(database, user) => {
                format!("dbs/{}/users/{}/", database.resource.rid, user.resource.rid)
            }
        }
    }
}

/// The feed of a kind below its owner.
pub(crate) async fn feed(call: &Call<'_>, branch: &Branch, body: Bytes) -> Result<Reply, Refusal> {
    let array = shape::array(branch.kind);
    shape::check_expiry(call, branch.kind)?;
    match *call.trace.method {
        Method::GET | Method::HEAD => {
            let reply = list(call, branch)?.charge("catalog read", ru::METADATA_READ);
            Ok(in_owner(call, branch, reply))
        }
        Method::POST if call.headers.is_query => {
            let owner = branch.owner_rid();
            let rows = call.catalog.children(branch.kind, owner).map(|child| render(call, branch, child));
            let reply = resource_query::serve(call, Some(owner), array, rows, &body).await?;
            Ok(in_owner(call, branch, reply))
        }
        Method::POST => create(call, branch, &body).await,
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

/// One child. Running a procedure is a POST to it, which its own module serves.
pub(crate) async fn one(call: &Call<'_>, branch: &Branch, text: &str, body: Bytes) -> Result<Reply, Refusal> {
    let child = branch.find(call.catalog, text).ok_or(Own::NotFound)?;
    shape::check_expiry(call, branch.kind)?;
    let (kind, owner, rid) = (branch.kind, branch.owner_rid(), child.resource.rid);
    match *call.trace.method {
        Method::GET | Method::HEAD => Ok(show(call, branch, &child)),
        Method::PUT => {
            let body = shape::accept(call, branch, Some(&child), &body)?;
            let child = call.db.replace_child(kind, owner, rid, body, if_match(call)).await?;
            Ok(written(call, branch, &child, StatusCode::OK))
        }
        Method::DELETE => {
            shape::check_unused(call, &child)?;
            call.db.delete_child(kind, owner, rid, if_match(call)).await?;
            let reply = Reply::empty(StatusCode::NO_CONTENT).charge("catalog write", ru::METADATA_WRITE);
            Ok(in_owner(call, branch, reply))
        }
        _ => Err(Own::MethodNotAllowed.into()),
    }
}

async fn create(call: &Call<'_>, branch: &Branch, body: &[u8]) -> Result<Reply, Refusal> {
    let body = shape::accept(call, branch, None, body)?;
    let (kind, owner) = (branch.kind, branch.owner_rid());
    let (child, is_new) = match call.headers.is_upsert {
        true => call.db.upsert_child(kind, owner, body, if_match(call)).await?,
        false => (call.db.create_child(kind, owner, body).await?, true),
    };
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(written(call, branch, &child, status))
}

/// One page in the order of creation; the continuation is the last RID shown.
fn list(call: &Call<'_>, branch: &Branch) -> Result<Reply, Refusal> {
    let owner = branch.owner_rid();
    let after = match call.headers.continuation {
        Some(text) => {
            let number = Rid::parse(text).and_then(|rid| rid.number_below(owner));
            Some(number.ok_or_else(envelope::invalid_continuation)?)
        }
        None => None,
    };
    let most = envelope::page_size(call.headers.max_item_count);
    let children = call.catalog.children(branch.kind, owner);
    let mut rest = children.skip_while(|child| after.is_some_and(|after| child.number <= after)).peekable();
    let (mut rows, mut last, mut bytes) = (Vec::new(), None, 0);
    while rows.len() < most && bytes < limits::PAGE_BYTES_MAX {
        let Some(child) = rest.next() else { break };
        let row = render(call, branch, child);
        bytes += row.len();
        last = Some(child.resource.rid);
        rows.push(row);
    }
    let continuation = rest.peek().and(last).map(|rid| rid.to_string());
    let body = envelope::wrap(Some(owner), shape::array(branch.kind), &rows);
    Ok(Reply::ok(body).page(rows.len(), continuation))
}

fn show(call: &Call<'_>, branch: &Branch, child: &Child) -> Reply {
    let etag = child.resource.etag;
    let reply = match is_current(call, etag) {
        true => Reply::empty(StatusCode::NOT_MODIFIED),
        false => Reply::ok(render(call, branch, child)),
    };
    let reply = in_owner(call, branch, reply.charge("catalog read", ru::METADATA_READ).etag(etag));
    match reply.catalog {
        Some((lsn, _)) => reply.in_catalog(lsn, Some(child.resource.lsn)),
        None => reply,
    }
}

fn written(call: &Call<'_>, branch: &Branch, child: &Child, status: StatusCode) -> Reply {
    let reply = Reply::new(status, render(call, branch, child))
        .charge("catalog write", ru::METADATA_WRITE)
        .etag(child.resource.etag);
    in_owner(call, branch, reply)
}

/// The headers that name the owner, say what it has of this kind, and how far its partition is.
fn in_owner(call: &Call<'_>, branch: &Branch, mut reply: Reply) -> Reply {
    let count = call.db.catalog().children_count(branch.kind, branch.owner_rid());
    let word = shape::quota_word(branch.kind);
    let quota = format!("{word}={};", shape::quota(branch.kind));
    let usage = format!("{word}={count};");
    for (name, text) in [(names::RESOURCE_QUOTA, quota), (names::RESOURCE_USAGE, usage)] {
        reply = reply.header(name, HeaderValue::from_str(&text).expect("quotas are ASCII"));
    }
    match &branch.owner {
        Owner::Database(database) => reply.in_catalog(call.db.catalog_lsn(), None).in_database(database),
        Owner::Container(container) => {
            let first = container.ranges().into_iter().next();
            let served = first.map(|range| Served { range_id: range.id, lsn: range.lsn, item_lsn: None });
            let charge = std::mem::take(&mut reply.receipt).charge;
            // The headers above say how many scripts there are; those of items are for items.
            let reply = reply.receipt(Receipt { served, charge }).in_container(container);
            Reply { usage: None, ..reply }
        }
        Owner::Account => reply.in_catalog(call.db.catalog_lsn(), None),
        Owner::User(database, user) => {
            let path = format!("dbs/{}/users/{}", database.resource.id, user.resource.id);
            let rid = user.resource.rid.to_string();
            let paths = [(names::ALT_CONTENT_PATH, path), (names::CONTENT_PATH, rid)];
            for (name, text) in paths {
                // A name that no header may carry is left out.
                if let Ok(value) = HeaderValue::from_str(&text) {
                    reply = reply.header(name, value);
                }
            }
            reply.in_catalog(call.db.catalog_lsn(), None)
        }
    }
}

fn render(call: &Call<'_>, branch: &Branch, child: &Child) -> Vec<u8> {
    let resource = &child.resource;
    let mut out = Vec::with_capacity(512);
    envelope::begin_resource(resource, &resource.body, &mut out);
    push_text(&mut out, "_rid", &resource.rid.to_string());
    let link = format!("{}{}/{}/", branch.link(), segment(branch.kind), resource.rid);
    push_text(&mut out, "_self", &link);
    push_text(&mut out, "_etag", &resource.etag.to_header());
    shape::push_extra(call, child, &mut out);
    push_number(&mut out, "_ts", resource.ts);
    out.push(b'}');
    out
}
