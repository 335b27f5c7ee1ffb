//! The logs that a history tells of, and what every level promises about them: only what is in a log is ever read.

use std::collections::{BTreeMap, HashMap};

use super::history::{Action, Event, History, Place};
use super::{Broken, Violation};

/// The log of each partition, as far as the history tells.
pub(super) struct Log<'h> {
    /// Places of all writes of a key, in order.
    keys: HashMap<(&'h str, &'h str), Vec<Place>>,
    /// Acknowledged writes of a partition: place, begin and end.
    acknowledged: HashMap<&'h str, Vec<(Place, u64, u64)>>,
}

/// A write that a value names.
struct Write<'h> {
    event: usize,
    of: &'h Event,
    key: &'h str,
}

impl<'h> Log<'h> {
    pub fn of(history: &'h History) -> Result<Log<'h>, Violation> {
        let writes = writes_of(history);
        let mut places: HashMap<usize, Place> = HashMap::new();
        for (number, event) in history.events.iter().enumerate() {
            if let Action::Write { place: Some(place), .. } = &event.action {
                places.insert(number, *place);
            }
        }
        for (number, event) in history.events.iter().enumerate() {
            learn(number, event, &writes, &mut places)?;
        }
        let mut log = Log { keys: HashMap::new(), acknowledged: HashMap::new() };
        let mut taken: BTreeMap<(&str, Place), usize> = BTreeMap::new();
        for (number, event) in history.events.iter().enumerate() {
            let (Action::Write { writes, place }, Some(at)) = (&event.action, places.get(&number)) else {
                continue;
            };
            if taken.insert((event.partition.as_str(), *at), number).is_some() {
                return Err(Violation { event: number, broken: Broken::SamePlace });
            }
            for (key, _) in writes {
                log.keys.entry((event.partition.as_str(), key.as_str())).or_default().push(*at);
            }
            if let (Some(_), Some(end)) = (place, event.end) {
                log.acknowledged.entry(event.partition.as_str()).or_default().push((*at, event.begin, end));
            }
        }
        log.keys.values_mut().for_each(|places| places.sort_unstable());
        log.acknowledged.values_mut().for_each(|writes| writes.sort_unstable());
        log.check_order(history)?;
        Ok(log)
    }

    /// The log's order is that of time, where time has one.
    fn check_order(&self, history: &History) -> Result<(), Violation> {
        for (partition, writes) in &self.acknowledged {
            // The earliest end of all writes behind each place must not be before its begin.
            let mut first_end = u64::MAX;
            for (place, begin, end) in writes.iter().rev() {
                if first_end < *begin {
                    let is_it = |event: &Event| {
                        event.partition == **partition
                            && matches!(&event.action, Action::Write { place: Some(at), .. } if at == place)
                    };
                    let event = history.events.iter().position(is_it).unwrap_or_default();
                    return Err(Violation { event, broken: Broken::LogAgainstTime });
                }
                first_end = first_end.min(*end);
            }
        }
        Ok(())
    }

    /// The first place behind a write of a key at which the key was written again.
    pub fn next_write(&self, partition: &str, key: &str, after: Option<Place>) -> Option<Place> {
        let places = self.keys.get(&(partition, key))?;
        let behind = places.partition_point(|place| Some(*place) <= after);
        places.get(behind).copied()
    }

    /// Places of the writes of a partition that were acknowledged before a moment, in the order of the log.
    pub fn acknowledged_before(&self, partition: &str, moment: u64) -> impl Iterator<Item = Place> {
        let writes = self.acknowledged.get(partition).map_or(&[][..], Vec::as_slice);
        writes.iter().filter(move |(_, _, end)| *end < moment).map(|(place, ..)| *place)
    }
}

fn writes_of(history: &History) -> HashMap<u64, Write<'_>> {
    let mut writes = HashMap::new();
    for (number, event) in history.events.iter().enumerate() {
        let (Action::Write { writes: pairs, .. } | Action::Refused { writes: pairs }) = &event.action else {
            continue;
        };
        for (key, value) in pairs {
            let before = writes.insert(*value, Write { event: number, of: event, key });
            assert!(before.is_none(), "the value {value} is written twice: {event}");
        }
    }
    writes
}

/// Checks what a read shows against the writes, and learns from it where writes of unknown fate stand.
fn learn(
    number: usize,
    event: &Event,
    writes: &HashMap<u64, Write<'_>>,
    places: &mut HashMap<usize, Place>,
) -> Result<(), Violation> {
    let Action::Read { seen, .. } = &event.action else { return Ok(()) };
    let broken = |broken| Err(Violation { event: number, broken });
    for seen in seen {
        let Some((value, place)) = seen.value else { continue };
        let found = writes.get(&value);
        let Some(write) =
            found.filter(|write| write.key == seen.key && write.of.partition == event.partition)
        else {
            return broken(Broken::NeverWritten);
        };
        if matches!(write.of.action, Action::Refused { .. }) {
            return broken(Broken::RefusedWrite);
        }
        if event.end.is_some_and(|end| write.of.begin > end) {
            return broken(Broken::FromTheFuture);
        }
        if *places.entry(write.event).or_insert(place) != place {
            return broken(Broken::OtherPlace);
        }
    }
    Ok(())
}
