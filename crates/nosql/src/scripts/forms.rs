//! How items and refusals look to scripts: as they look to clients.

use std::sync::{Arc, LazyLock};

use orrery_cluster::store::Item;
use orrery_cluster::{Container, Error, ErrorKind, Forms, ScriptRefusal};
use orrery_doc::{Doc, DocBuilder, Value};

use crate::activity::ActivityId;
use crate::errors::{Refusal, Voice, push_json_string};
use crate::items::document::{ItemBody, parse_any};
use crate::items::render::Renderer;

struct ItemForms;

pub(super) fn shared() -> Arc<dyn Forms> {
    static FORMS: LazyLock<Arc<dyn Forms>> = LazyLock::new(|| Arc::new(ItemForms));
    FORMS.clone()
}

impl Forms for ItemForms {
    fn read_item(&self, text: &[u8], may_name: bool) -> Result<(String, Doc), ScriptRefusal> {
        let parsed = match may_name {
            true => named(text),
            false => ItemBody::parse(text),
        };
        let item = parsed.map_err(|refusal| shown(&refusal))?;
        Ok((item.id, item.doc))
    }

    fn write_item(&self, container: &Container, item: &Item, out: &mut Vec<u8>) {
        Renderer::new(container).write_item(item, out);
    }

    fn refusal(&self, error: &ErrorKind) -> ScriptRefusal {
        shown(&Refusal::Db(Error::from(error.clone())))
    }
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
