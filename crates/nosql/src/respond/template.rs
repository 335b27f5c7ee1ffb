//! Header maps that are ready but for their values.
//!
//! To put a header into a map is to hash its name, byte by byte, and a map that is filled grows several times. But the
//! answers of a server are of a few shapes: the same names in the same order. The first answer of a shape leaves its
//! map behind as a template; those that follow copy it and replace the values, one after the other. That works because
//! a map goes through its headers in the order in which they were put in, also after it was copied.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Values;
use crate::headers::names;

/// Shapes that are kept; a server has fewer. What is beyond is put together header by header.
const SHAPES_MAX: usize = 32;

const EMPTY: HeaderValue = HeaderValue::from_static("");

macro_rules! fields {
    ($($field:ident = $name:expr;)*) => {
        /// A header whose value differs between answers. Its number is quicker to compare than its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Field { $($field,)* }

        impl Field {
            fn name(self) -> HeaderName {
                match self { $(Field::$field => $name,)* }
            }
        }
    };
}

fields! {
    ActivityId = names::ACTIVITY_ID;
    AltContentPath = names::ALT_CONTENT_PATH;
    ContentLocation = header::CONTENT_LOCATION;
    ContentPath = names::CONTENT_PATH;
    Continuation = names::CONTINUATION;
    CurrentReplicaSetSize = names::CURRENT_REPLICA_SET_SIZE;
    CurrentWriteQuorum = names::CURRENT_WRITE_QUORUM;
    Etag = header::ETAG;
    Explain = names::EXPLAIN;
    GlobalCommittedLsn = names::GLOBAL_COMMITTED_LSN;
    ItemCount = names::ITEM_COUNT;
    ItemLlsn = names::ITEM_LLSN;
    ItemLsn = names::ITEM_LSN;
    Llsn = names::LLSN;
    Lsn = names::LSN;
    QuorumAckedLlsn = names::QUORUM_ACKED_LLSN;
    QuorumAckedLsn = names::QUORUM_ACKED_LSN;
    RangeId = names::RANGE_ID;
    RequestCharge = names::REQUEST_CHARGE;
    RequestDuration = names::REQUEST_DURATION;
    ResourceQuota = names::RESOURCE_QUOTA;
    ResourceUsage = names::RESOURCE_USAGE;
    RetryAfterMs = names::RETRY_AFTER_MS;
    SessionToken = names::SESSION_TOKEN;
    Substatus = names::SUBSTATUS;
    TransportRequestId = names::TRANSPORT_REQUEST_ID;
}

/// The templates of all shapes seen so far.
pub(super) struct Templates {
    /// What every answer carries.
    constant: HeaderMap,
    known: ArcSwap<Vec<Arc<Template>>>,
}

struct Template {
    shape: Vec<Field>,
    map: HeaderMap,
}

impl Templates {
    pub fn new(constant: HeaderMap) -> Templates {
        Templates { constant, known: ArcSwap::default() }
    }

    /// The constant headers, followed by these.
    pub fn fill(&self, values: Values) -> HeaderMap {
        let known = self.known.load();
        match known.iter().find(|template| values.fields().eq(template.shape.iter().copied())) {
            Some(template) => self.copy(template, values),
            None if known.len() < SHAPES_MAX => self.learn(values),
            None => self.insert(values),
        }
    }

    fn copy(&self, template: &Template, values: Values) -> HeaderMap {
        let mut map = template.map.clone();
        let mut left_out = Vec::new();
        let slots = map.values_mut().skip(self.constant.len());
        for (slot, (field, value)) in slots.zip(values.take()) {
            match value {
                Some(value) => *slot = value,
                None => left_out.push(field),
            }
        }
        for field in left_out {
            map.remove(field.name());
        }
        map
    }

    fn insert(&self, values: Values) -> HeaderMap {
        let mut map = self.constant.clone();
        for (field, value) in values.take() {
            if let Some(value) = value {
                map.insert(field.name(), value);
            }
        }
        map
    }

    /// Puts the headers together and keeps a template, unless a header is missing or there twice.
    fn learn(&self, values: Values) -> HeaderMap {
        let shape: Vec<Field> = values.fields().collect();
        let map = self.insert(values);
        if map.len() == self.constant.len() + shape.len() {
            let mut blank = map.clone();
            blank.values_mut().skip(self.constant.len()).for_each(|value| *value = EMPTY);
            self.keep(Arc::new(Template { shape, map: blank }));
        }
        map
    }

    fn keep(&self, template: Arc<Template>) {
        self.known.rcu(|known| {
            let mut more = Vec::clone(known);
            // Another answer may have brought the same shape in the meantime.
            if more.len() < SHAPES_MAX && more.iter().all(|other| other.shape != template.shape) {
                more.push(template.clone());
            }
            more
        });
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn values(fields: &[Field], text: &str) -> Values {
        let mut values = Values::new();
        fields.iter().for_each(|field| values.put(*field, |out| out.write_str(text)));
        values
    }

    fn listed(map: &HeaderMap) -> Vec<(String, String)> {
        map.iter()
            .map(|(name, value)| (name.to_string(), value.to_str().expect("ASCII").to_owned()))
            .collect()
    }

    fn templates() -> Templates {
        let mut constant = HeaderMap::new();
        constant.insert(header::SERVER, HeaderValue::from_static("Orrery"));
        Templates::new(constant)
    }

    /// What templates rely on, and the documentation of maps does not promise.
    #[test]
    fn a_copied_map_goes_through_its_headers_as_they_were_put_in() {
        let mut map = HeaderMap::new();
        let names: Vec<HeaderName> =
            (0..60).map(|i| HeaderName::try_from(format!("x-{}", i * 7919 % 61)).expect("a name")).collect();
        names.iter().for_each(|name| _ = map.insert(name, HeaderValue::from_static("before")));
        let mut copy = map.clone();
        assert!(copy.keys().eq(&names));
        copy.values_mut().zip(0u64..).for_each(|(value, i)| *value = HeaderValue::from(i));
        for (name, i) in names.iter().zip(0u64..) {
            assert_eq!(copy[name], HeaderValue::from(i));
        }
    }

    #[test]
    fn a_template_gives_what_inserting_gives() {
        let (learnt, fields) = (templates(), [Field::Lsn, Field::Etag, Field::ActivityId]);
        let first = learnt.fill(values(&fields, "1"));
        assert_eq!(learnt.known.load().len(), 1);
        for text in ["1", "2", ""] {
            let (copied, inserted) =
                (learnt.fill(values(&fields, text)), templates().fill(values(&fields, text)));
            assert_eq!(copied, inserted);
            assert_eq!(listed(&copied), listed(&inserted));
        }
        assert_eq!(learnt.known.load().len(), 1);
        assert_eq!(listed(&first)[0], ("server".to_owned(), "Orrery".to_owned()));
    }

    #[test]
    fn values_that_no_header_may_carry_are_left_out_of_copies_too() {
        let (learnt, fields) = (templates(), [Field::Lsn, Field::Continuation, Field::Etag]);
        for text in ["1", "2", "3"] {
            let mut bad = Values::new();
            bad.put(Field::Lsn, |out| out.write_str(text));
            bad.put(Field::Continuation, |out| out.write_str("line\nbreak"));
            bad.put(Field::Etag, |out| out.write_str(text));
            let map = learnt.fill(bad);
            let listed = listed(&map);
            let lasting = [("server", "Orrery"), ("lsn", text), ("etag", text)];
            assert!(lasting.iter().all(|(name, value)| map[*name] == *value), "{listed:?}");
            assert_eq!(map.len(), lasting.len(), "{listed:?}");
            assert_eq!(learnt.fill(values(&fields, text)).len(), 4);
        }
    }

    #[test]
    fn a_header_that_is_there_twice_has_its_last_value() {
        let learnt = templates();
        for text in ["1", "2"] {
            let map = learnt.fill(values(&[Field::Lsn, Field::Etag, Field::Lsn], text));
            assert_eq!(map["lsn"], text);
            assert_eq!(map.len(), 3);
        }
        assert_eq!(learnt.known.load().len(), 0);
    }

    #[test]
    fn only_so_many_shapes_are_kept() {
        let learnt = templates();
        let fields = [Field::Lsn, Field::Etag, Field::ItemLsn, Field::ItemLlsn, Field::Llsn, Field::RangeId];
        for mask in 0..1 << fields.len() {
            let shape: Vec<Field> = fields
                .iter()
                .enumerate()
                .filter(|(i, _)| mask >> i & 1 == 1)
                .map(|(_, field)| *field)
                .collect();
            for _ in 0..2 {
                assert_eq!(learnt.fill(values(&shape, "1")), templates().fill(values(&shape, "1")));
            }
        }
        assert_eq!(learnt.known.load().len(), SHAPES_MAX);
    }
}
