//! Calendar arithmetic and the ISO 8601 text of points in time.
//!
//! A point in time is a count of 100 ns ticks since 1970, which covers the years 1 to 9999 and is
//! the unit of the service's own functions.

pub(super) const TICKS_PER_SECOND: i64 = 10_000_000;
pub(super) const TICKS_PER_DAY: i64 = 86_400 * TICKS_PER_SECOND;

/// No place on earth is further from UTC.
const OFFSET_SECONDS_MAX: i64 = 14 * 3600;

/// The fields of a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    /// Ticks since midnight.
    pub ticks: i64,
}

impl Civil {
    pub fn from_ticks(ticks: i64) -> Option<Self> {
        let (days, ticks) = (ticks.div_euclid(TICKS_PER_DAY), ticks.rem_euclid(TICKS_PER_DAY));
        let (year, month, day) = date_of(days);
        (1..=9999).contains(&year).then_some(Self { year, month, day, ticks })
    }

    pub fn to_ticks(self) -> Option<i64> {
        let valid = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..TICKS_PER_DAY).contains(&self.ticks);
        valid.then(|| days_of(self.year, self.month, self.day) * TICKS_PER_DAY + self.ticks)
    }

    /// Moves by months; a day that the new month lacks becomes its last.
    pub fn add_months(self, months: i64) -> Option<Self> {
        let total = self.year.checked_mul(12)?.checked_add(self.month - 1)?.checked_add(months)?;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        if !(1..=9999).contains(&year) {
            return None;
        }
        Some(Self { year, month, day: self.day.min(days_in_month(year, month)), ..self })
    }
}

pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March, so that
/// the leap day is the last of its year.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// `YYYY-MM-DDThh:mm:ss.fffffffZ`
pub(super) fn format(ticks: i64) -> Option<String> {
    let civil = Civil::from_ticks(ticks)?;
    let seconds = civil.ticks / TICKS_PER_SECOND;
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z",
        civil.year,
        civil.month,
        civil.day,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        civil.ticks % TICKS_PER_SECOND
    ))
}

/// Reads `YYYY-MM-DD`, alone or with a time `hh:mm:ss` behind a `T` or a space, which may have one to
/// seven digits of a second; all with or without a `Z`. A time may have an offset such as `+01:30`
/// instead, as .NET writes it: the point is then the same time in UTC.
pub(super) fn parse(text: &str) -> Option<i64> {
    let (text, is_utc) = text.strip_suffix('Z').map_or((text, false), |text| (text, true));
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let (time, offset) = match time {
        Some(time) if !is_utc => offset_of(time)?,
        time => (time, 0),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    if parts.next().is_some() {
        return None;
    }
    let ticks = time.map_or(Some(0), time_ticks)?;
    let utc = Civil { year, month, day, ticks }.to_ticks()? - offset;
    Civil::from_ticks(utc).map(|_| utc)
}

/// Cuts the offset off a time, and says how many ticks the time is ahead of UTC.
fn offset_of(time: &str) -> Option<(Option<&str>, i64)> {
    let Some(at) = time.rfind(['+', '-']) else { return Some((Some(time), 0)) };
    let (time, offset) = time.split_at(at);
    let (hours, minutes) = offset[1..].split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    let seconds = hours * 3600 + minutes * 60;
    (minutes < 60 && seconds <= OFFSET_SECONDS_MAX).then_some(())?;
    let ticks = seconds * TICKS_PER_SECOND;
    Some((Some(time), if offset.starts_with('-') { -ticks } else { ticks }))
}

fn time_ticks(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, fraction_ticks(fraction)?),
        None => (text, 0),
    };
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 2)?;
    let minute = digits(parts.next()?, 2)?;
    let second = digits(parts.next()?, 2)?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some((hour * 3600 + minute * 60 + second) * TICKS_PER_SECOND + fraction)
}

fn fraction_ticks(text: &str) -> Option<i64> {
    let places = u32::try_from(text.len()).ok().filter(|places| (1..=7).contains(places))?;
    Some(digits(text, text.len())? * 10i64.pow(7 - places))
}

fn digits(text: &str, length: usize) -> Option<i64> {
    (text.len() == length && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_ticks_agree() {
        for text in [
            "1970-01-01T00:00:00.0000000Z",
            "2020-02-29T23:59:59.9999999Z",
            "0001-01-01T00:00:00.0000000Z",
            "9999-12-31T23:59:59.9999999Z",
            "1969-12-31T23:59:59.0000001Z",
        ] {
            assert_eq!(format(parse(text).unwrap()).unwrap(), text);
        }
        assert_eq!(parse("2020-01-02T03:04:05Z"), Some(15_779_342_450_000_000));
        assert_eq!(parse("2020-01-02 03:04:05.1"), Some(15_779_342_451_000_000));
        for bad in [
            "",
            "2020",
            "2020-13-01",
            "2020-02-30",
            "2020-01-01T24:00:00Z",
            "2020-01-01T20Z",
            "2020-01-01T20:00Z",
            "2020-01-01 20:21:25.",
            "2020-01-01 20:21:25.12345678",
            "2020-01-01T20:21:+5",
            "2020 - 01 - 03T01: 02:03.1234567Z",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
