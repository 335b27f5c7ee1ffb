//! Dates and times.

use super::date_format::format_as;
use super::date_text::{Civil, TICKS_PER_DAY, TICKS_PER_SECOND, format, parse};
use super::{Args, Function, function, text, timed};
use crate::value::Val;

pub(super) static FUNCTIONS: [Function; 22] = [
    function("DATETIMEADD", 3, 3, add),
    function("DATETIMEBIN", 2, 4, bin),
    function("DATETIMEDIFF", 3, 3, difference),
    function("DATETIMEFORMAT", 2, 2, |args| {
        text(format_as(Civil::from_ticks(parse(args.str(0)?)?)?, args.str(1)?))
    }),
    function("DATETIMEFROMPARTS", 3, 7, from_parts),
    function("DATETIMEPART", 2, 2, |args| {
        Some(Val::Int(Part::from_name(args.str(0)?)?.of(Civil::from_ticks(parse(args.str(1)?)?)?)))
    }),
    function("DATETIMETOTICKS", 1, 1, |args| Some(Val::Int(parse(args.str(0)?)?))),
    function("DATETIMETOTIMESTAMP", 1, 1, |args| Some(Val::Int(parse(args.str(0)?)?.div_euclid(10_000)))),
    function("DAY", 1, 1, |args| Some(Val::Int(Civil::from_ticks(parse(args.str(0)?)?)?.day))),
    function("MONTH", 1, 1, |args| Some(Val::Int(Civil::from_ticks(parse(args.str(0)?)?)?.month))),
    function("YEAR", 1, 1, |args| Some(Val::Int(Civil::from_ticks(parse(args.str(0)?)?)?.year))),
    function("IS_DATETIME", 1, 1, |args| Some(Val::Bool(args.str(0).and_then(parse).is_some()))),
    function("TICKSTODATETIME", 1, 1, |args| Some(Val::text(format(args.int(0)?)?))),
    function("TIMESTAMPTODATETIME", 1, 1, |args| Some(Val::text(format(args.int(0)?.checked_mul(10_000)?)?))),
    timed("GETCURRENTDATETIME", 0, 0, |args| Some(Val::text(format(args.now_ticks())?))),
    timed("GETCURRENTDATETIMESTATIC", 0, 0, |args| Some(Val::text(format(args.now_ticks())?))),
    timed("GETCURRENTTICKS", 0, 0, |args| Some(Val::Int(args.now_ticks()))),
    timed("GETCURRENTTICKSSTATIC", 0, 0, |args| Some(Val::Int(args.now_ticks()))),
    timed("GETCURRENTTIMESTAMP", 0, 0, |args| Some(Val::Int(args.now_ticks().div_euclid(10_000)))),
    timed("GETCURRENTTIMESTAMPSTATIC", 0, 0, |args| Some(Val::Int(args.now_ticks().div_euclid(10_000)))),
    timed("NOW", 0, 2, |args| {
        if args.len() == 0 {
            Some(Val::text(format(args.now_ticks())?))
        } else {
            from_now(args, args.int(1)?)
        }
    }),
    timed("AGO", 2, 2, |args| from_now(args, args.int(1)?.checked_neg()?)),
];

/// 1601-01-01, the first day that the service puts into bins.
const FIRST_BIN_TICKS: i64 = -11_644_473_600 * TICKS_PER_SECOND;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl Part {
    fn from_name(name: &str) -> Option<Self> {
        const NAMES: [(&[&str], Part); 9] = [
            (&["year", "yyyy", "yy"], Part::Year),
            (&["month", "mm", "m"], Part::Month),
            (&["day", "dd", "d"], Part::Day),
            (&["hour", "hh"], Part::Hour),
            (&["minute", "mi", "n"], Part::Minute),
            (&["second", "ss", "s"], Part::Second),
            (&["millisecond", "ms"], Part::Millisecond),
            (&["microsecond", "mcs"], Part::Microsecond),
            (&["nanosecond", "ns"], Part::Nanosecond),
        ];
        let known = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        NAMES.iter().find(|(names, _)| known(names)).map(|(_, part)| *part)
    }

    /// Ticks per part. Nanoseconds are finer than a tick and years and months vary: none.
    fn ticks(self) -> Option<i64> {
        Some(match self {
            Self::Year | Self::Month | Self::Nanosecond => return None,
            Self::Day => TICKS_PER_DAY,
            Self::Hour => 3600 * TICKS_PER_SECOND,
            Self::Minute => 60 * TICKS_PER_SECOND,
            Self::Second => TICKS_PER_SECOND,
            Self::Millisecond => 10_000,
            Self::Microsecond => 10,
        })
    }

    fn of(self, civil: Civil) -> i64 {
        let fraction = civil.ticks % TICKS_PER_SECOND;
        let seconds = civil.ticks / TICKS_PER_SECOND;
        match self {
            Self::Year => civil.year,
            Self::Month => civil.month,
            Self::Day => civil.day,
            Self::Hour => seconds / 3600,
            Self::Minute => seconds / 60 % 60,
            Self::Second => seconds % 60,
            Self::Millisecond => fraction / 10_000,
            Self::Microsecond => fraction / 10,
            Self::Nanosecond => fraction * 100,
        }
    }

    fn shift(self, ticks: i64, amount: i64) -> Option<i64> {
        match self {
            Self::Year => Civil::from_ticks(ticks)?.add_months(amount.checked_mul(12)?)?.to_ticks(),
            Self::Month => Civil::from_ticks(ticks)?.add_months(amount)?.to_ticks(),
            Self::Nanosecond => ticks.checked_add(amount / 100),
            part => ticks.checked_add(amount.checked_mul(part.ticks()?)?),
        }
    }

    /// How many boundaries of this part lie between two points.
    fn between(self, start: i64, end: i64) -> Option<i64> {
        let (a, b) = (Civil::from_ticks(start)?, Civil::from_ticks(end)?);
        Some(match self {
            Self::Year => b.year - a.year,
            Self::Month => (b.year - a.year) * 12 + b.month - a.month,
            Self::Nanosecond => end.checked_sub(start)?.checked_mul(100)?,
            part => {
                let ticks = part.ticks()?;
                end.div_euclid(ticks) - start.div_euclid(ticks)
            }
        })
    }
}

/// The current time, moved by some of the part that the first argument names.
fn from_now<'a>(args: &Args<'_, 'a>, amount: i64) -> Option<Val<'a>> {
    let part = Part::from_name(args.str(0)?)?;
    Some(Val::text(format(part.shift(args.now_ticks(), amount)?)?))
}

fn add<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let part = Part::from_name(args.str(0)?)?;
    let shifted = part.shift(parse(args.str(2)?)?, args.int(1)?)?;
    Some(Val::text(format(shifted)?))
}

fn difference<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let part = Part::from_name(args.str(0)?)?;
    Some(Val::Int(part.between(parse(args.str(1)?)?, parse(args.str(2)?)?)?))
}

/// The start of the bin that holds the point; bins of `size` parts are counted from an origin.
fn bin<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let ticks = parse(args.str(0)?)?;
    let part = Part::from_name(args.str(1)?)?;
    let size = if args.len() > 2 { args.int(2)? } else { 1 };
    let origin = if args.len() > 3 { parse(args.str(3)?)? } else { 0 };
    (size > 0 && ticks >= FIRST_BIN_TICKS && origin >= FIRST_BIN_TICKS).then_some(())?;
    let start = match part {
        Part::Year | Part::Month => {
            let size = if part == Part::Year { size.checked_mul(12)? } else { size };
            let mut months = Part::Month.between(origin, ticks)?;
            if Part::Month.shift(origin, months)? > ticks {
                months -= 1;
            }
            Part::Month.shift(origin, months.div_euclid(size).checked_mul(size)?)?
        }
        Part::Nanosecond => {
            let size = (size / 100).max(1);
            origin.checked_add((ticks - origin).div_euclid(size).checked_mul(size)?)?
        }
        part => {
            let size = part.ticks()?.checked_mul(size)?;
            origin.checked_add((ticks - origin).div_euclid(size).checked_mul(size)?)?
        }
    };
    (start >= FIRST_BIN_TICKS).then(|| format(start))?.map(Val::text)
}

fn from_parts<'a>(args: &Args<'_, 'a>) -> Option<Val<'a>> {
    let mut parts = [1, 1, 1, 0, 0, 0, 0];
    for (i, part) in parts.iter_mut().enumerate().take(args.len()) {
        *part = args.int(i)?;
    }
    let [year, month, day, hour, minute, second, fraction] = parts;
    let valid = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && (0..TICKS_PER_SECOND).contains(&fraction);
    valid.then_some(())?;
    let ticks = (hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction;
    Some(Val::text(format(Civil { year, month, day, ticks }.to_ticks()?)?))
}
