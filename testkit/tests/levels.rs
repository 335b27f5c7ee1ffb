//! The checker of consistency levels, on histories that are written by hand: what it must find, and what it must not.

use orrery_testkit::levels::{Broken, History, Level, Violation};

const BOUNDED: Level = Level::Bounded { writes: 1, time: 5 };
const LEVELS: [Level; 5] = [Level::Strong, BOUNDED, Level::Session, Level::ConsistentPrefix, Level::Eventual];

/// A history that a level forbids, with the event that breaks it and the promise that is broken.
struct Bad {
    why: &'static str,
    level: Level,
    event: usize,
    broken: Broken,
    history: &'static str,
}

const fn bad(why: &'static str, level: Level, event: usize, broken: Broken, history: &'static str) -> Bad {
    Bad { why, level, event, broken, history }
}

const BAD: [Bad; 20] = [
    bad("a value out of nowhere", Level::Eventual, 0, Broken::NeverWritten, "A 1-2 read x=1@1 @1"),
    bad(
        "a write that was refused was carried out",
        Level::Eventual,
        1,
        Broken::RefusedWrite,
        "A 1-2 refused x=1
         B 3-4 read x=1@1 @1",
    ),
    bad(
        "a read knows what is written later",
        Level::Eventual,
        0,
        Broken::FromTheFuture,
        "A 1-2 read x=1@1 @1
         B 3-4 write x=1 @1",
    ),
    bad(
        "a version with the LSN of another",
        Level::Eventual,
        1,
        Broken::OtherPlace,
        "A 1-2 write x=1 @1
         A 3-4 read x=1@2 @2",
    ),
    bad(
        "two writes got one LSN",
        Level::Eventual,
        1,
        Broken::SamePlace,
        "A 1-2 write x=1 @1
         B 1-2 write y=2 @1",
    ),
    bad(
        "a later write has a smaller LSN",
        Level::Eventual,
        1,
        Broken::LogAgainstTime,
        "A 1-2 write x=1 @2
         B 3-4 write y=2 @1",
    ),
    bad(
        "half a transaction",
        Level::ConsistentPrefix,
        1,
        Broken::NoSuchState,
        "A 1-2 write x=1 y=2 @1
         B 3-4 read x=1@1 y=none @1",
    ),
    bad(
        "half a transaction of which nobody heard",
        Level::ConsistentPrefix,
        2,
        Broken::NoSuchState,
        "A 1-2 write x=1 y=2 @1
         A 3-? write x=3 y=4
         B 4-5 read x=3@2 y=2@1 @2",
    ),
    bad(
        "an old item beside one that was written after its successor",
        Level::ConsistentPrefix,
        3,
        Broken::NoSuchState,
        "A 1-2 write x=1 @1
         A 3-4 write x=2 @2
         A 5-6 write y=3 @3
         B 7-8 read x=1@1 y=3@3 @3",
    ),
    bad(
        "an answer that says it is further than it shows",
        Level::ConsistentPrefix,
        2,
        Broken::BehindItsOwnWord,
        "A 1-2 write x=1 @1
         A 3-4 write x=2 @2
         B 5-6 read x=1@1 @2",
    ),
    bad(
        "a session does not see its own write",
        Level::Session,
        1,
        Broken::ReadYourWrites,
        "A 1-2 write x=1 @1
         A 3-4 read x=none @0",
    ),
    bad(
        "a session does not see its own transaction at another key",
        Level::Session,
        2,
        Broken::ReadYourWrites,
        "A 1-2 write y=1 @1
         A 3-4 write x=2 y=3 @2
         A 5-6 read y=1@1 @1",
    ),
    bad(
        "a session goes back in time",
        Level::Session,
        3,
        Broken::MonotonicReads,
        "A 1-2 write x=1 @1
         A 3-4 write x=2 @2
         B 5-6 read x=2@2 @2
         B 7-8 read x=1@1 @1",
    ),
    bad(
        "a session goes back in time at another key",
        Level::Session,
        3,
        Broken::MonotonicReads,
        "A 1-2 write y=1 @1
         A 3-4 write x=2 @2
         B 5-6 read x=2@2 @2
         B 7-8 read y=none @0",
    ),
    bad(
        "two writes of a session, sent one behind the other, change places",
        Level::Session,
        1,
        Broken::MonotonicWrites,
        "A 1-5 write x=1 @2
         A 2-6 write y=2 @1",
    ),
    bad(
        "a write of a session comes before what it has read",
        Level::Session,
        2,
        Broken::WritesFollowReads,
        "A 1-9 write x=1 @5
         B 2-3 read x=1@5 @5
         B 4-8 write y=2 @4",
    ),
    bad(
        "a session meets a version of before a change of regions",
        Level::Session,
        1,
        Broken::ReadYourWrites,
        "A 1-2 write x=1 @2.1
         A 3-4 read x=none @1.9",
    ),
    bad(
        "more writes behind than is promised",
        BOUNDED,
        2,
        Broken::TooManyWritesBehind,
        "A 1-2 write x=1 @1
         A 3-4 write x=2 @2
         B 5-6 read x=none @0",
    ),
    bad(
        "a write is missing for longer than is promised",
        BOUNDED,
        1,
        Broken::TooOld,
        "A 1-2 write x=1 @1
         B 9-10 read x=none @0",
    ),
    bad(
        "a value that another client has seen replaced, while its write is still under way",
        Level::Strong,
        3,
        Broken::NotLinearizable,
        "A 1-2 write x=1 @1
         A 3-20 write x=2 @2
         B 4-5 read x=2@2 @2
         C 6-7 read x=1@1 @1",
    ),
];

/// A history that a level allows.
struct Good {
    why: &'static str,
    level: Level,
    history: &'static str,
}

const fn good(why: &'static str, level: Level, history: &'static str) -> Good {
    Good { why, level, history }
}

const GOOD: [Good; 20] = [
    good("nothing happened", Level::Strong, ""),
    good("there is nothing yet", Level::Strong, "A 1-2 read x=none @0"),
    good(
        "one after the other",
        Level::Strong,
        "A 1-2 write x=1 @1
         B 3-4 read x=1@1 @1
         B 5-6 write x=2 @2
         A 7-8 read x=2@2 @2",
    ),
    good(
        "two reads beside a write, one on each side of it",
        Level::Strong,
        "A 1-9 write x=1 @1
         B 2-3 read x=none @0
         C 4-5 read x=1@1 @1
         B 6-7 read x=1@1 @1",
    ),
    good(
        "two writes at once, in either order",
        Level::Strong,
        "A 1-4 write x=1 @2
         B 2-3 write x=2 @1
         C 5-6 read x=1@2 @2",
    ),
    good(
        "nobody heard of a write that happened",
        Level::Strong,
        "A 1-? write x=1
         B 2-3 read x=none @0
         C 9-10 read x=1@1 @1",
    ),
    good(
        "nobody heard of a write that did not happen",
        Level::Strong,
        "A 1-? write x=1
         B 2-3 write x=2 @1
         C 4-5 read x=2@1 @1",
    ),
    good(
        "a write that was refused is not there",
        Level::Strong,
        "A 1-2 refused x=1
         B 3-4 read x=none @0",
    ),
    good(
        "a transaction is seen whole",
        Level::Strong,
        "A 1-2 write x=1 y=2 @1
         B 3-4 read x=1@1 y=2@1 @1
         A 5-6 write y=3 @2
         B 7-8 read x=1@1 y=3@2 @2",
    ),
    good(
        "partitions have logs of their own",
        Level::Strong,
        "A 1-2 write p/x=1 @1
         A 3-4 write q/x=2 @1
         A 5-6 read p/x=1@1 @1",
    ),
    good(
        "one write behind",
        BOUNDED,
        "A 1-2 write x=1 @1
         B 3-4 read x=none @0",
    ),
    good(
        "many writes behind that were not acknowledged when the read began",
        BOUNDED,
        "A 1-9 write x=1 @1
         B 1-9 write y=2 @2
         C 1-9 write x=3 @3
         D 8-10 read x=none y=none @0",
    ),
    good(
        "older than promised, but nothing was written since",
        BOUNDED,
        "A 1-2 write x=1 @1
         B 3-4 write y=2 @2
         C 90-91 read x=1@1 @2",
    ),
    good(
        "another session is behind",
        Level::Session,
        "A 1-2 write x=1 @1
         A 3-4 read x=1@1 @1
         B 5-6 read x=none @0",
    ),
    good(
        "a session is behind in a partition that it has not met",
        Level::Session,
        "A 1-2 write p/x=1 @9
         B 3-4 write q/x=2 @9
         A 5-6 read q/x=none @0",
    ),
    good(
        "a session goes on after a change of regions",
        Level::Session,
        "A 1-2 write x=1 @1.7
         A 3-4 read x=1@1.7 @2.0
         A 5-6 write x=2 @2.1",
    ),
    good(
        "a session sees more than it has to",
        Level::Session,
        "A 1-2 write x=1 @1
         B 3-4 write x=2 @2
         A 5-6 read x=2@2 @2
         A 7-8 write y=3 @3",
    ),
    good(
        "back in time, from state to state",
        Level::ConsistentPrefix,
        "A 1-2 write x=1 @1
         A 3-4 write y=2 @2
         B 5-6 read x=1@1 y=2@2 @2
         B 7-8 read x=1@1 y=none @1
         B 9-10 read x=none y=none @0",
    ),
    good(
        "an answer that says less than it shows",
        Level::ConsistentPrefix,
        "A 1-2 write x=1 @1
         A 3-4 write x=2 @2
         B 5-6 read x=2@2 @1",
    ),
    good(
        "each item for itself was there once",
        Level::Eventual,
        "A 1-2 write x=1 y=2 @1
         A 3-4 write x=3 y=4 @2
         B 5-6 read x=3@2 y=2@1 @2",
    ),
];

fn parse(text: &str) -> History {
    History::parse(text).unwrap_or_else(|line| panic!("not in the notation: {line}"))
}

#[test]
fn bad_histories_are_rejected_with_their_reason() {
    for Bad { why, level, event, broken, history } in BAD {
        let found = parse(history).check(level);
        assert_eq!(found, Err(Violation { event, broken }), "{why}:\n{history}");
    }
}

#[test]
fn good_histories_are_accepted() {
    for Good { why, level, history } in GOOD {
        assert_eq!(parse(history).check(level), Ok(()), "{why}:\n{history}");
    }
}

/// What a level allows, all weaker ones allow, and what it forbids, all stronger ones forbid.
#[test]
fn levels_are_stronger_and_weaker() {
    let is_weaker = |weak: Level, strong: Level| {
        weak == strong
            || strong == Level::Strong
            || weak == Level::Eventual
            || (weak == Level::ConsistentPrefix && strong != Level::Eventual)
    };
    for level in LEVELS {
        for Good { why, level: allowed, history } in GOOD {
            if is_weaker(level, allowed) {
                assert_eq!(parse(history).check(level), Ok(()), "{why} at {level:?}");
            }
        }
        for Bad { why, level: forbidden, history, .. } in BAD {
            if is_weaker(forbidden, level) {
                assert!(parse(history).check(level).is_err(), "{why} at {level:?}");
            }
        }
    }
}

/// What a level must not find: each promise is one level's own.
#[test]
fn a_level_asks_for_no_more_than_it_promises() {
    let allowed = |history: &str| -> Vec<Level> {
        LEVELS.into_iter().filter(|level| parse(history).check(*level).is_ok()).collect()
    };
    let behind = "A 1-2 write x=1 @1\nA 3-4 write x=2 @2\nB 5-6 read x=none @0";
    assert_eq!(allowed(behind), [Level::Session, Level::ConsistentPrefix, Level::Eventual]);
    let forgets = "A 1-2 write x=1 @1\nA 3-4 read x=none @0";
    assert_eq!(allowed(forgets), [BOUNDED, Level::ConsistentPrefix, Level::Eventual]);
    let half = "A 1-2 write x=1 y=2 @1\nB 3-4 read x=1@1 y=none @1";
    assert_eq!(allowed(half), [Level::Eventual]);
}

#[test]
fn the_notation_reads_what_it_prints() {
    let all = BAD.iter().map(|bad| bad.history).chain(GOOD.iter().map(|good| good.history));
    for text in all {
        let history = parse(text);
        assert_eq!(parse(&history.to_string()), history);
    }
    for wrong in
        ["A 1-2 write", "A 1 write x=1 @1", "A 1-2 read x=1 @1", "A 1-2 sing x=1", "A 1-2 read x=1@1"]
    {
        assert_eq!(History::parse(wrong).is_err(), wrong != "A 1-2 write", "{wrong}");
    }
}
