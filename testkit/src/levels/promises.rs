//! What levels promise about the place in the log that explains a read.

use std::collections::HashMap;

use super::history::{Action, Event, History, Place};
use super::log::Log;
use super::{Broken, Level, Violation};

/// The places that explain a read: from the first up to but not including the second.
struct Span {
    from: Option<Place>,
    behind: Option<Place>,
}

/// What a session has seen of a partition.
#[derive(Default)]
struct Known {
    wrote: Option<Place>,
    read: Option<Place>,
}

pub(super) fn check(history: &History, log: &Log<'_>, level: Level) -> Result<(), Violation> {
    let mut sessions: HashMap<(&str, &str), Known> = HashMap::new();
    let mut order: Vec<usize> = (0..history.events.len()).collect();
    order.sort_by_key(|number| history.events[*number].begin);
    for number in order {
        let event = &history.events[number];
        let known = sessions.entry((event.session.as_str(), event.partition.as_str())).or_default();
        let checked = match &event.action {
            Action::Read { .. } => check_read(event, log, level, known),
            Action::Write { place: Some(place), .. } => check_write(*place, level, known),
            Action::Write { .. } | Action::Refused { .. } => Ok(()),
        };
        checked.map_err(|broken| Violation { event: number, broken })?;
    }
    Ok(())
}

fn check_write(place: Place, level: Level, known: &mut Known) -> Result<(), Broken> {
    if level == Level::Session || level == Level::Strong {
        if known.wrote.is_some_and(|before| before >= place) {
            return Err(Broken::MonotonicWrites);
        }
        if known.read.is_some_and(|before| before >= place) {
            return Err(Broken::WritesFollowReads);
        }
    }
    known.wrote = known.wrote.max(Some(place));
    Ok(())
}

fn check_read(event: &Event, log: &Log<'_>, level: Level, known: &mut Known) -> Result<(), Broken> {
    let Action::Read { seen, at } = &event.action else { return Ok(()) };
    // Eventually, each item is a committed version for itself; that was checked with the log.
    if level == Level::Eventual {
        return Ok(());
    }
    let mut span = Span { from: None, behind: None };
    for seen in seen {
        let place = seen.value.map(|(_, place)| place);
        let next = log.next_write(&event.partition, &seen.key, place);
        span.from = span.from.max(place);
        span.behind = [span.behind, next].into_iter().flatten().min();
    }
    if !span.reaches(span.from) {
        return Err(Broken::NoSuchState);
    }
    if !span.reaches(Some(*at)) {
        return Err(Broken::BehindItsOwnWord);
    }
    match level {
        Level::Session => check_session(&span, *at, known)?,
        Level::Bounded { writes, time } => check_bounded(&span, event, log, writes, time)?,
        Level::Strong => {
            if !span.reaches(log.acknowledged_before(&event.partition, event.begin).max()) {
                return Err(Broken::Stale);
            }
        }
        Level::ConsistentPrefix | Level::Eventual => {}
    }
    // No earlier state explains the answer, so the session has seen at least this one.
    known.read = known.read.max(span.from).max(Some(*at));
    Ok(())
}

impl Span {
    /// Whether a place at or behind the given one explains the read.
    fn reaches(&self, place: Option<Place>) -> bool {
        self.behind.is_none_or(|behind| place.is_none_or(|place| place < behind))
    }
}

fn check_session(span: &Span, at: Place, known: &Known) -> Result<(), Broken> {
    for (place, broken) in [(known.wrote, Broken::ReadYourWrites), (known.read, Broken::MonotonicReads)] {
        // A replica that does not know of the last change of regions must not answer, whatever it shows.
        if place.is_some_and(|place| place.version > at.version) || !span.reaches(place) {
            return Err(broken);
        }
    }
    Ok(())
}

fn check_bounded(span: &Span, event: &Event, log: &Log<'_>, writes: usize, time: u64) -> Result<(), Broken> {
    let Some(behind) = span.behind else { return Ok(()) };
    // The latest state that explains the read lacks the write there and all behind it.
    let missing =
        |moment| log.acknowledged_before(&event.partition, moment).filter(|place| *place >= behind).count();
    if missing(event.begin) > writes {
        return Err(Broken::TooManyWritesBehind);
    }
    if missing(event.begin.saturating_sub(time)) > 0 {
        return Err(Broken::TooOld);
    }
    Ok(())
}
