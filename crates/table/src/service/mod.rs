//! What can be said about the service as a whole: its properties ([`properties`]), of which the rules for browsers
//! ([`cors`]) have an effect, and its statistics. They are kept in the catalog, in the form in which clients send them.

pub(crate) mod cors;
pub(crate) mod properties;

use http::StatusCode;
use orrery_cluster::{Catalog, ChildKind, Rid, ru};
use orrery_doc::{Doc, DocBuilder};

use crate::errors::Refusal;
use crate::gateway::Call;
use crate::respond::{Reply, receipt};
use crate::xml::{self, Element};
use properties::Properties;

/// The name under which the catalog keeps the properties.
const SETTING: &str = "table-service-properties";
pub(crate) const XML: &str = "application/xml";

/// The properties as they are now.
pub(crate) fn current(catalog: &Catalog) -> Properties {
    let stored = catalog.child(ChildKind::AccountSetting, Rid::ACCOUNT, SETTING);
    let text = stored.and_then(|child| child.resource.body.root().get(STORED_XML).as_str());
    text.and_then(|text| xml::parse(text.as_bytes()).ok())
        .and_then(|root| Properties::read(&root).ok())
        .unwrap_or_default()
}

pub(crate) fn show(call: &Call<'_>) -> Reply {
    let text = current(call.catalog).whole().document();
    Reply::new(StatusCode::OK, XML, text).receipt(receipt("catalog read", ru::METADATA_READ))
}

/// Sections that the body leaves out stay as they are.
pub(crate) async fn replace(call: &Call<'_>, body: &[u8]) -> Result<Reply, Refusal> {
    let sent = Properties::read(&xml::parse(body)?)?;
    let mut text = String::new();
    current(call.catalog).replaced_by(sent).element().write(&mut text);
    call.db.upsert_child(ChildKind::AccountSetting, Rid::ACCOUNT, setting(SETTING, &text), None).await?;
    Ok(Reply::empty(StatusCode::ACCEPTED).receipt(receipt("catalog write", ru::METADATA_WRITE)))
}

/// There is no second place that could be behind.
pub(crate) fn statistics() -> Reply {
    let replication = vec![Element::of_text("Status", "unavailable"), Element::of_text("LastSyncTime", "")];
    let root = Element::of("StorageServiceStats", vec![Element::of("GeoReplication", replication)]);
    Reply::new(StatusCode::OK, XML, root.document()).receipt(receipt("catalog read", ru::METADATA_READ))
}

/// Where a stored setting has its text.
pub(crate) const STORED_XML: &str = "xml";

pub(crate) fn setting(name: &str, text: &str) -> Doc {
    let mut doc = DocBuilder::with_capacity(text.len() + 64);
    doc.begin_object();
    doc.name("id").str(name);
    doc.name(STORED_XML).str(text);
    doc.end_object();
    doc.finish()
}
