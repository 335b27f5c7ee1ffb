//! Points in time, as the protocol writes them: seven digits behind the second, in UTC.
//!
//! Two counts of the same 100 ns: *ticks* since the year 1, which stored properties have, and the store's own since 1970.

use orrery_gateway::shapes::entity::TICKS_END;

/// Ticks between the year 1 and 1970.
pub(crate) const TICKS_TO_1970: i64 = 719_162 * 86_400 * PER_SECOND;
const PER_SECOND: i64 = 10_000_000;
/// Days from the first of March of the year 0 to the first of January of the year 1.
const DAYS_FROM_MARCH_0: i64 = 306;
const DAYS_OF_400_YEARS: i64 = 146_097;

/// `2022-05-06T00:47:47.9267336Z`, of ticks since the year 1.
pub(crate) fn text_of(ticks: i64) -> String {
    digits_of(ticks).iter().copied().map(char::from).collect()
}

/// Appends the same text.
pub(crate) fn write(ticks: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&digits_of(ticks));
}

fn digits_of(ticks: i64) -> [u8; 28] {
    let ticks = ticks.clamp(0, TICKS_END - 1);
    let (days, rest) = (ticks / (86_400 * PER_SECOND), ticks % (86_400 * PER_SECOND));
    let (year, month, day) = civil(days);
    let (seconds, part) = (rest / PER_SECOND, rest % PER_SECOND);
    let mut text = *b"0000-00-00T00:00:00.0000000Z";
    let places =
        [(0..4, year), (5..7, month), (8..10, day), (11..13, seconds / 3600), (14..16, seconds / 60 % 60)];
    for (place, mut number) in places.into_iter().chain([(17..19, seconds % 60), (20..27, part)]) {
        for digit in text[place].iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
    }
    text
}

/// The same, of the store's time.
pub(crate) fn text_of_written(time: u64) -> String {
    text_of(ticks_of_written(time))
}

/// Ticks since the year 1, of the store's time.
pub(crate) fn ticks_of_written(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX - TICKS_TO_1970).saturating_add(TICKS_TO_1970)
}

/// The version of an entity: `W/"datetime'2022-05-06T00%3A47%3A47.9267336Z'"`.
pub(crate) fn etag_of_written(time: u64) -> String {
    format!("W/\"datetime'{}'\"", text_of_written(time).replace(':', "%3A"))
}

/// The store's time that a version names; none if it is no version of ours.
pub(crate) fn written_of_etag(text: &str) -> Option<u64> {
    let text = text.trim();
    let inner = text.strip_prefix("W/").unwrap_or(text).trim_matches('"');
    let inner = inner.strip_prefix("datetime'")?.strip_suffix('\'')?;
    let ticks = parse(&inner.replace("%3A", ":").replace("%3a", ":"))?;
    u64::try_from(ticks - TICKS_TO_1970).ok()
}

/// Ticks of `2024-01-01T00:00:00Z`: with a part of the second of any length, of which seven digits count, with `Z`, an
/// offset or nothing, or a day alone.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    };
    let is = |at: usize, wanted: u8| bytes.get(at) == Some(&wanted);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    if !is(4, b'-') || !is(7, b'-') || year < 1 || !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    if day > days_in_month(year, month) {
        return None;
    }
    let days = days_before(year, month) + day - 1;
    let (mut at, mut ticks) = (10, days * 86_400 * PER_SECOND);
    if bytes.len() > 10 {
        if !(is(10, b'T') || is(10, b't') || is(10, b' ')) || !is(13, b':') {
            return None;
        }
        let (hour, minute) = (number(11, 13)?, number(14, 16)?);
        at = 16;
        let mut second = 0;
        if is(16, b':') {
            second = number(17, 19)?;
            at = 19;
        }
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        ticks += ((hour * 60 + minute) * 60 + second) * PER_SECOND;
        if is(at, b'.') {
            let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            let part = number(at + 1, at + 1 + digits.min(7))?;
            ticks += part * 10_i64.pow(7 - digits.min(7) as u32);
            at += 1 + digits;
        }
        ticks -= offset(bytes.get(at..)?)? * PER_SECOND;
        at = bytes.len();
    }
    (at == bytes.len() && (0..TICKS_END).contains(&ticks)).then_some(ticks)
}

/// Seconds that a zone is ahead: `Z`, `+02:00`, or nothing for UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        [] | [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), a, b, b':', c, d] => {
            let pair = |high: u8, low: u8| {
                let both = high.is_ascii_digit() && low.is_ascii_digit();
                both.then(|| i64::from(high - b'0') * 10 + i64::from(low - b'0'))
            };
            let (hours, minutes) = (pair(*a, *b)?, pair(*c, *d)?);
            let seconds = (hours * 60 + minutes) * 60;
            (hours <= 14 && minutes <= 59).then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first day of the year 1 to the first of a month.
fn days_before(year: i64, month: i64) -> i64 {
    let years = year - 1;
    let whole = years * 365 + years / 4 - years / 100 + years / 400;
    whole + (1..month).map(|month| days_in_month(year, month)).sum::<i64>()
}

/// The date of a day, counted from the first of the year 1.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted in years that begin in March, the day that not every year has is the last, and months have a rule.
    let days = days + DAYS_FROM_MARCH_0;
    let (centuries, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_next_year = i64::from(month >= 10);
    (centuries * 400 + year + of_next_year, month + 3 - 12 * of_next_year, day - (153 * month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_ticks_are_each_other() {
        for (text, ticks) in [
            ("0001-01-01T00:00:00.0000000Z", 0),
            ("1970-01-01T00:00:00.0000000Z", TICKS_TO_1970),
            ("9999-12-31T23:59:59.9999999Z", TICKS_END - 1),
            ("2024-02-29T12:34:56.7891234Z", 638_448_068_967_891_234),
        ] {
            assert_eq!(parse(text), Some(ticks), "{text}");
            assert_eq!(text_of(ticks), text);
        }
        for ticks in (0..TICKS_END).step_by(86_400 * PER_SECOND as usize * 173) {
            assert_eq!(parse(&text_of(ticks)), Some(ticks));
        }
    }

    #[test]
    fn every_day_has_its_date() {
        let mut next = 0;
        for year in 1..=9_999 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(civil(next), (year, month, day));
                    next += 1;
                }
            }
        }
        assert_eq!(next * 86_400 * PER_SECOND, TICKS_END);
    }

    #[test]
    fn other_ways_to_write_a_moment_are_understood() {
        let wanted = parse("2024-01-01T00:00:00.0000000Z");
        for text in [
            "2024-01-01",
            "2024-01-01T00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T02:00:00+02:00",
            "2024-01-01 00:00:00.00000000000Z",
        ] {
            assert_eq!(parse(text), wanted, "{text}");
        }
        for text in [
            "",
            "2024",
            "2024-13-01",
            "2024-02-30",
            "2024-01-01T",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00.Z",
            "x",
            "2024-01-01T00:00:00Zx",
            "0000-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn versions_name_the_moment_of_the_write() {
        let etag = etag_of_written(16_517_980_679_267_336);
        assert_eq!(etag, "W/\"datetime'2022-05-06T00%3A47%3A47.9267336Z'\"");
        assert_eq!(written_of_etag(&etag), Some(16_517_980_679_267_336));
        for other in ["", "*", "W/\"wrong\"", "W/\"datetime'x'\"", "\"0000-0000\""] {
            assert_eq!(written_of_etag(other), None, "{other}");
        }
    }
}
