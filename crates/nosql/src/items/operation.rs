//! One operation of a batch, in the terms that JSON and HybridRow share.
//!
//! What is wrong with one operation belongs to that operation, and the answer says so at its place. So its document
//! stays as it came until the operation is turned into one of the database.

use std::sync::Arc;

use orrery_cluster::store::{Action, ItemId, Op, Target};
use orrery_doc::{Doc, PartitionKey, PartitionKeyDef, Value, json};

use crate::access::ItemAct;
use crate::errors::{Own, Refusal};
use crate::headers::IndexingDirective;
use crate::items::document::{self, ItemBody, parse_any};
use crate::items::patch::Patch;
use crate::items::shape::{self, Shape};
use crate::items::{key, options};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Upsert,
    Read,
    Replace,
    Delete,
    Patch,
}

impl Kind {
    /// What the operation needs the right to do; a patch replaces.
    pub fn act(self) -> ItemAct {
        match self {
            Kind::Create => ItemAct::Create,
            Kind::Upsert => ItemAct::Upsert,
            Kind::Read => ItemAct::Read,
            Kind::Replace | Kind::Patch => ItemAct::Replace,
            Kind::Delete => ItemAct::Delete,
        }
    }
}

/// The document or patch of an operation: a part of a larger document, or bytes that nobody has looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    Value(Value<'a>),
    Bytes(&'a [u8]),
}

/// The key that an operation names for itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OwnKey<'a> {
    Absent,
    /// The text that the header would have.
    Text(&'a str),
    /// An array.
    Value(Value<'a>),
}

/// One operation, borrowed from the body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a> {
    pub kind: Kind,
    pub id: Option<&'a str>,
    pub key: OwnKey<'a>,
    pub content: Content<'a>,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub directive: IndexingDirective,
    /// The client wants no item back for this operation.
    pub is_minimal: Option<bool>,
    /// Something that the operation asks for and this release does not do.
    pub unsupported: Option<&'static str>,
}

impl<'a> Operation<'a> {
    /// The operation's own partition key.
    pub fn key(&self, def: &PartitionKeyDef) -> Result<PartitionKey, Refusal> {
        match self.key {
            OwnKey::Absent => key::of_request(def, None),
            OwnKey::Text(text) => key::full(def, key::parse(text)?),
            OwnKey::Value(value) => {
                let mut text = Vec::new();
                json::write(value, &mut text);
                key::full(def, key::parse(&String::from_utf8_lossy(&text))?)
            }
        }
    }

    /// Refuses an operation of a transaction that names a key of its own which is another. Some clients write something
    /// there that is no key at all, and mean nothing by it.
    pub fn check_key(&self, def: &PartitionKeyDef, key: &PartitionKey) -> Result<(), Refusal> {
        match self.key(def) {
            Ok(own) if !key::same(&own, key) => Err(Own::KeyMismatch.into()),
            _ => Ok(()),
        }
    }

    /// The operation in the terms of the database, within one logical partition.
    pub fn to_op(self, shape: &Shape<'_>, key: &PartitionKey) -> Result<Op, Refusal> {
        if let Some(feature) = self.unsupported {
            return Err(Refusal::unsupported(feature));
        }
        let (target, action) = match self.kind {
            Kind::Create | Kind::Upsert | Kind::Replace => self.document(shape, key)?,
            Kind::Read => (self.target()?, Action::Read),
            Kind::Delete => (self.target()?, Action::Delete),
            Kind::Patch => (self.target()?, Action::Edit(Arc::new(self.patch(shape)?))),
        };
        let precondition = match self.kind {
            Kind::Create => Default::default(),
            // The protocol between gateway and partition has one field for both, and for a read it means the second.
            Kind::Read => options::precondition(None, self.if_none_match.or(self.if_match)),
            _ => options::precondition(self.if_match, self.if_none_match),
        };
        let indexed = options::is_indexed(self.directive, shape.automatic);
        Ok(Op { target, action, precondition, indexed, unlinked: false })
    }

    /// What stands for the operation in a transaction when it is wrong in itself. Of a replace that brings a document of
    /// another key it matters more whether there is something to replace.
    pub fn wrong(&self, refusal: &Refusal) -> Op {
        let is_misplaced = matches!(refusal, Refusal::Own(Own::KeyMismatch));
        let needs_item = self.kind == Kind::Replace && is_misplaced && self.id.is_some();
        Op {
            target: Target::Id(ItemId::new(self.id.unwrap_or_default()).unwrap_or_default()),
            action: Action::Wrong { needs_item },
            precondition: Default::default(),
            indexed: true,
            unlinked: false,
        }
    }

    fn patch(self, shape: &Shape<'_>) -> Result<Patch, Refusal> {
        let parsed: Doc;
        let value = match self.content {
            Content::Value(value) => value,
            Content::Bytes(bytes) => {
                parsed = parse_any(bytes)?;
                parsed.root()
            }
        };
        Patch::from_value(shape, value)
    }

    fn document(self, shape: &Shape<'_>, key: &PartitionKey) -> Result<(Target, Action), Refusal> {
        let item = match self.content {
            Content::Value(value) => ItemBody::from_value(value)?,
            Content::Bytes(bytes) => ItemBody::parse(bytes)?,
        };
        shape::check(shape.api, &item.doc)?;
        key::check_document(shape.key, key, &item.doc)?;
        let other_id = self.id.filter(|id| id.as_bytes() != item.id.as_bytes());
        let action = match (self.kind, other_id) {
            (Kind::Replace, Some(id)) => {
                let action = Action::Rename { id: item.id, doc: item.doc };
                return Ok((document::target(id)?, action));
            }
            (_, Some(_)) => {
                return Err(Refusal::bad_request(
                    "The id of a batch operation must be the id of its document.",
                ));
            }
            (Kind::Create, None) => Action::Create(item.doc),
            (Kind::Upsert, None) => Action::Upsert(item.doc),
            (_, None) => Action::Replace(item.doc),
        };
        Ok((Target::Id(item.id), action))
    }

    fn target(self) -> Result<Target, Refusal> {
        let id =
            self.id.ok_or_else(|| Refusal::bad_request("This batch operation needs the property 'id'."))?;
        document::target(id)
    }
}

/// What a word says about indexing; words that are not known say nothing.
pub(crate) fn directive(name: Option<&str>) -> IndexingDirective {
    match name {
        Some(name) if name.eq_ignore_ascii_case("Exclude") => IndexingDirective::Exclude,
        Some(name) if name.eq_ignore_ascii_case("Include") => IndexingDirective::Include,
        _ => IndexingDirective::Default,
    }
}
