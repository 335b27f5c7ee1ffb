//! What an API adds to each of its items, such as a link or a version.
//!
//! Such properties are never stored: they follow from the item's header, when a query asks for them. How they are
//! named and written is the gateway's affair, so it gives their writer along with its request. A request without one
//! sees items as they are stored.

use std::fmt::Debug;

use orrery_query::{SystemField, SystemProperties, SystemValue};
use orrery_store::{Item, ItemHeader};

use crate::catalog::Container;
use crate::request::PageOptions;

/// The properties that an API adds to items.
pub trait ItemProperties: Debug + Send + Sync {
    fn read(&self, container: &Container, header: &ItemHeader, field: SystemField) -> SystemValue;

    /// Appends all of them as the inside of a JSON object.
    fn write_json(&self, container: &Container, header: &ItemHeader, out: &mut Vec<u8>);
}

/// Those of one item.
pub(crate) struct PropertiesOf<'a> {
    api: &'static dyn ItemProperties,
    container: &'a Container,
    header: &'a ItemHeader,
}

impl<'a> PropertiesOf<'a> {
    pub fn of(container: &'a Container, page: &PageOptions, item: &'a Item) -> Option<PropertiesOf<'a>> {
        Some(PropertiesOf { api: page.properties?, container, header: &item.header })
    }

    /// In the form of a row.
    pub fn of_row<'p>(properties: &'p Option<PropertiesOf<'_>>) -> Option<&'p dyn SystemProperties> {
        properties.as_ref().map(|properties| properties as &dyn SystemProperties)
    }
}

impl SystemProperties for PropertiesOf<'_> {
    fn read(&self, field: SystemField) -> SystemValue {
        self.api.read(self.container, self.header, field)
    }

    fn written_at(&self) -> Option<u64> {
        Some(self.header.time)
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        self.api.write_json(self.container, self.header, out);
    }
}
