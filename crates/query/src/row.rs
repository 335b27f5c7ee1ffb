//! One item as a query sees it: the stored document and the properties that the store adds.

use orrery_doc::{DocBuilder, DocRef, Value};

use crate::value::Val;

/// One item of the source.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub doc: DocRef<'a>,
    /// The properties that are not in the stored document; `None` for resources that carry theirs
    /// in the document.
    pub system: Option<&'a dyn SystemProperties>,
    /// A key that orders the items of this source and never changes. It breaks ties of ORDER BY, and
    /// clients that resume a query expect the order of the `_rid`. Empty when the source has none.
    pub place: &'a [u8],
}

impl<'a> Row<'a> {
    /// A row without system properties.
    pub fn plain(doc: DocRef<'a>) -> Self {
        Self { doc, system: None, place: &[] }
    }
}

/// The properties that the store keeps beside the document, in the order of the service's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemField {
    Rid,
    SelfLink,
    Etag,
    Attachments,
    Ts,
}

impl SystemField {
    pub const ALL: [Self; 5] = [Self::Rid, Self::SelfLink, Self::Etag, Self::Attachments, Self::Ts];

    const NAMES: [&'static str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }
}

/// Renders system properties on demand, because most queries look at none of them.
pub trait SystemProperties: Sync {
    fn read(&self, field: SystemField) -> SystemValue;

    /// When the item was written, in units of 100 ns since 1970, if the store knows.
    fn written_at(&self) -> Option<u64> {
        None
    }

    /// Appends all of them as the inside of a JSON object. A gateway that shows many whole items has a faster way.
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut first = true;
        for field in SystemField::ALL {
            let value = system_val(self.read(field));
            if value.is_undefined() {
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            orrery_doc::json::write_str(field.name(), out);
            out.push(b':');
            value.write_json(out);
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemValue {
    Absent,
    Int(i64),
    Text(String),
}

/// System properties that are already rendered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemProps {
    pub rid: String,
    pub self_link: String,
    pub etag: String,
    pub attachments: Option<String>,
    pub ts: i64,
}

impl SystemProperties for SystemProps {
    fn read(&self, field: SystemField) -> SystemValue {
        match field {
            SystemField::Rid => SystemValue::Text(self.rid.clone()),
            SystemField::SelfLink => SystemValue::Text(self.self_link.clone()),
            SystemField::Etag => SystemValue::Text(self.etag.clone()),
            SystemField::Attachments => {
                self.attachments.clone().map_or(SystemValue::Absent, SystemValue::Text)
            }
            SystemField::Ts => SystemValue::Int(self.ts),
        }
    }
}

impl<'a> Row<'a> {
    pub(crate) fn get(&self, name: &str) -> Val<'a> {
        if name.starts_with('_')
            && let (Some(system), Some(field)) = (self.system, SystemField::from_name(name))
        {
            return system_val(system.read(field));
        }
        match self.doc.root() {
            Value::Object(object) => Val::from(object.get(name)),
            _ => Val::Undefined,
        }
    }

    /// Appends the item as JSON: the document's own properties in one run, then the system's.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        let any = match self.doc.root() {
            Value::Object(object) => {
                let skip: &[&str] = if self.system.is_some() { &SystemField::NAMES } else { &[] };
                orrery_doc::json::write_fields(object, skip, out)
            }
            _ => false,
        };
        if let Some(system) = self.system {
            let before = out.len();
            out.extend(any.then_some(b','));
            let comma = out.len();
            system.write_json(out);
            if out.len() == comma {
                out.truncate(before);
            }
        }
        out.push(b'}');
    }

    /// Appends the item to a document: values of types that JSON does not have stay what they are.
    pub(crate) fn write_doc(&self, out: &mut DocBuilder) {
        out.begin_object();
        if let Value::Object(object) = self.doc.root() {
            for (name, value) in object.iter().filter(|(name, _)| !self.is_hidden(name)) {
                out.name(name).value(value);
            }
        }
        for (name, value) in self.added() {
            out.name(name);
            value.write_doc(out);
        }
        out.end_object();
    }

    /// Whether a property of the system stands where the document has one.
    fn is_hidden(&self, name: &str) -> bool {
        self.system.is_some() && name.starts_with('_') && SystemField::from_name(name).is_some()
    }

    /// The properties of the system.
    fn added(&self) -> impl Iterator<Item = (&'a str, Val<'a>)> + use<'a> {
        let of_system = |system: &'a dyn SystemProperties| {
            let named = move |field: SystemField| -> (&'a str, Val<'a>) {
                (field.name(), system_val(system.read(field)))
            };
            SystemField::ALL.into_iter().map(named)
        };
        let all = self.system.into_iter().flat_map(of_system);
        all.filter(|(_, value)| !value.is_undefined())
    }

    /// All properties: the document's own, then the system's.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'a str, Val<'a>)> + use<'a> {
        let row = *self;
        let stored = match self.doc.root() {
            Value::Object(object) => Some(object),
            _ => None,
        };
        let stored = stored
            .into_iter()
            .flat_map(|object| object.iter())
            .filter(move |(name, _)| !row.is_hidden(name))
            .map(|(name, value)| (name, Val::from(value)));
        stored.chain(self.added())
    }
}

fn system_val<'a>(value: SystemValue) -> Val<'a> {
    match value {
        SystemValue::Absent => Val::Undefined,
        SystemValue::Int(value) => Val::Int(value),
        SystemValue::Text(text) => Val::text(text),
    }
}
