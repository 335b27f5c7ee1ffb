//! How items and refusals look to scripts: as they look to clients.

use std::sync::{Arc, LazyLock};

use orrery_cluster::limits::JSON_DEPTH_MAX;
use orrery_cluster::store::{Item, ItemId};
use orrery_cluster::{
    Container, Cursor, Error, ErrorKind, Forms, ItemProperties, Outside, ScriptCollection, ScriptLink,
    ScriptRefusal,
};
use orrery_doc::{Doc, DocBuilder, Value, json};
use orrery_gateway::ActivityId;
use orrery_query::Parameters;

use crate::errors::{Refusal, Voice, push_json_string};
use crate::items::document::{ItemBody, parse_any};
use crate::items::render::Renderer;
use crate::items::{PROPERTIES, continuation, shape};
use crate::scripts::links;

const NO_SUCH_LINK: &str = "The link is not that of this container or of an item in it.";
const OTHER_KEY: &str = "Requests originating from scripts cannot reference partition keys other than the one for \
     which client request was submitted.";

struct ItemForms;

pub(super) fn shared() -> Arc<dyn Forms> {
    static FORMS: LazyLock<Arc<dyn Forms>> = LazyLock::new(|| Arc::new(ItemForms));
    FORMS.clone()
}

impl Forms for ItemForms {
    fn collection(&self, container: &Container) -> ScriptCollection {
        links::collection(container)
    }

    fn resolve(&self, container: &Container, link: &str) -> Option<ScriptLink> {
        links::resolve(container, link)
    }

    fn properties(&self) -> &'static dyn ItemProperties {
        PROPERTIES
    }

    fn read_query(&self, text: &str) -> Result<(String, Parameters), ScriptRefusal> {
        read_query(text).map_err(|refusal| shown(&refusal))
    }

    fn outside(&self, what: Outside) -> ScriptRefusal {
        shown(&Refusal::bad_request(match what {
            Outside::Link => NO_SUCH_LINK,
            Outside::Key => OTHER_KEY,
        }))
    }

    fn read_item(
        &self,
        container: &Container,
        text: &[u8],
        may_name: bool,
    ) -> Result<(ItemId, Doc), ScriptRefusal> {
        let parsed = match may_name {
            true => named(text),
            false => ItemBody::parse(text),
        };
        let item = parsed.and_then(|item| {
            shape::check(container.definition.api, &item.doc)?;
            Ok(item)
        });
        let item = item.map_err(|refusal| shown(&refusal))?;
        Ok((item.id, item.doc))
    }

    fn write_item(&self, container: &Container, item: &Item, out: &mut Vec<u8>) {
        Renderer::new(container).write_item(item, out);
    }

    fn refusal(&self, error: &ErrorKind) -> ScriptRefusal {
        shown(&Refusal::Db(Error::from(error.clone())))
    }

    fn write_cursor(&self, cursor: &Cursor) -> String {
        continuation::write(cursor)
    }

    fn read_cursor(&self, text: &str) -> Result<Cursor, ScriptRefusal> {
        continuation::read(text).map_err(|refusal| shown(&refusal))
    }
}

/// `{"query":"...","parameters":[...]}`.
fn read_query(text: &str) -> Result<(String, Parameters), Refusal> {
    let doc = json::parse(text.as_bytes(), JSON_DEPTH_MAX)
        .map_err(|_| Refusal::bad_request("The query of the script is not JSON."))?;
    let text = doc.root().get("query").as_str();
    let text = text.ok_or_else(|| Refusal::bad_request("The query of the script has no text."))?;
    let members = doc.root().as_object();
    let mut names = members.iter().flat_map(|members| members.iter()).map(|(name, _)| name);
    if let Some(name) = names.find(|name| !matches!(*name, "query" | "parameters")) {
        let shown: String = name.chars().take(64).collect();
        return Err(Refusal::bad_request(format!(
            "The member '{shown}' of the query of the script is not supported."
        )));
    }
    Ok((text.to_owned(), Parameters::from_value(doc.root().get("parameters"))?))
}

/// The item with an id of ours if it has none.
fn named(text: &[u8]) -> Result<ItemBody, Refusal> {
    let doc = parse_any(text)?;
    match doc.root().as_object().is_some_and(|object| !object.contains("id")) {
        true => named_value(doc.root()),
        false => ItemBody::parse(text),
    }
}

/// The same for an item out of a larger document.
pub(super) fn named_value(value: Value<'_>) -> Result<ItemBody, Refusal> {
    let Some(object) = value.as_object().filter(|object| !object.contains("id")) else {
        return ItemBody::from_value(value);
    };
    let id = ActivityId::choose(None);
    let mut made = DocBuilder::with_capacity(256);
    made.begin_object();
    for (name, value) in object.iter() {
        made.field(name, value);
    }
    made.field("id", Value::Str(id.as_str()));
    made.end_object();
    ItemBody::from_value(made.finish().root())
}

/// The number and the text of a callback's error.
fn shown(refusal: &Refusal) -> ScriptRefusal {
    let wire = refusal.wire();
    let message = match wire.voice {
        Voice::Partition(text) => {
            let mut message = String::from("{\"Errors\":[");
            push_json_string(&mut message, &text);
            message.push_str("]}");
            message
        }
        Voice::PartitionJson(json) => json,
        Voice::Gateway(text) => text.into_owned(),
    };
    ScriptRefusal { status: wire.status.as_u16(), message }
}
