//! Days and the periods that partition keys name. Times are days since 1970-01-01, with fractions.

use serde::{Deserialize, Serialize};

/// How exactly a property tells the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

impl Period {
    pub const ALL: [Period; 6] =
        [Period::Second, Period::Minute, Period::Hour, Period::Day, Period::Month, Period::Year];

    pub fn name(self) -> &'static str {
        match self {
            Period::Second => "second",
            Period::Minute => "minute",
            Period::Hour => "hour",
            Period::Day => "day",
            Period::Month => "month",
            Period::Year => "year",
        }
    }

    pub fn days(self) -> f64 {
        match self {
            Period::Second => 1.0 / 86_400.0,
            Period::Minute => 1.0 / 1_440.0,
            Period::Hour => 1.0 / 24.0,
            Period::Day => 1.0,
            Period::Month => 365.25 / 12.0,
            Period::Year => 365.25,
        }
    }

    /// The period in which a time lies: `2026-01-15T08` for an hour.
    pub fn render(self, time: f64) -> String {
        let (year, month, day) = civil(time.floor() as i64);
        let second = ((time - time.floor()) * 86_400.0) as u32;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let date = format!("{year:04}-{month:02}-{day:02}");
        match self {
            Period::Year => date[..4].to_owned(),
            Period::Month => date[..7].to_owned(),
            Period::Day => date,
            Period::Hour => format!("{date}T{hour:02}"),
            Period::Minute => format!("{date}T{hour:02}:{minute:02}"),
            Period::Second => format!("{date}T{hour:02}:{minute:02}:{second:02}"),
        }
    }

    /// All periods that a span up to `time` touches, newest first, or none when there are more than `limit`.
    pub fn touched(self, time: f64, days: f64, limit: usize) -> Option<Vec<String>> {
        if days / self.days() > limit as f64 {
            return None;
        }
        // Half a step at a time misses no month, however short.
        let mut names: Vec<String> = Vec::new();
        let mut back = 0.0f64;
        loop {
            let name = self.render(time - back.min(days));
            if names.last() != Some(&name) {
                names.push(name);
            }
            if back >= days {
                return (names.len() <= limit).then_some(names);
            }
            back += self.days() / 2.0;
        }
    }
}

/// Reads a time as properties write it: `2026`, `2026-01`, `2026-01-15`, `2026-01-15T08:30:05…`.
pub fn parse(text: &str) -> Option<(f64, Period)> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let mark = |at: usize, marks: &str| text.get(at..at + 1).is_some_and(|mark| marks.contains(mark));
    let year = number(0, 4).filter(|year| (1900..2200).contains(year))?;
    if text.len() == 4 {
        return Some((day_number(year, 1, 1) as f64, Period::Year));
    }
    let month = number(5, 7).filter(|month| mark(4, "-") && (1..=12).contains(month))?;
    if text.len() == 7 {
        return Some((day_number(year, month, 1) as f64, Period::Month));
    }
    let day = number(8, 10).filter(|day| mark(7, "-") && (1..=31).contains(day))?;
    let days = day_number(year, month, day) as f64;
    if text.len() == 10 {
        return Some((days, Period::Day));
    }
    let hour = number(11, 13).filter(|hour| mark(10, "T ") && *hour < 24)? as f64;
    let (mut time, mut period) = (days + hour / 24.0, Period::Hour);
    if let Some(minute) = number(14, 16).filter(|_| mark(13, ":")) {
        (time, period) = (time + minute as f64 / 1_440.0, Period::Minute);
    }
    if let Some(second) = number(17, 19).filter(|_| mark(16, ":")) {
        (time, period) = (time + second as f64 / 86_400.0, Period::Second);
    }
    Some((time, period))
}

/// Reads a date `YYYY-MM-DD` as days since 1970-01-01.
pub fn parse_date(text: &str) -> Option<f64> {
    parse(text).filter(|(_, period)| *period == Period::Day).map(|(time, _)| time)
}

/// The number of a day. Years begin in March here, so that the leap day is their last.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months_since_march = (month + 9) % 12;
    let day_of_year = (153 * months_since_march + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
}

fn civil(day: i64) -> (i64, i64, i64) {
    // The first guess may be a year too late near the turn of a year.
    let mut year = ((day as f64 + 719_468.0) / 365.2425).floor() as i64 + 1;
    while day_number(year, 3, 1) > day {
        year -= 1;
    }
    let of_year = day - day_number(year, 3, 1);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (day, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_468, "2026-01-15"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(Period::Day.render(f64::from(day)), text);
            assert_eq!(parse_date(text), Some(f64::from(day)));
        }
        for day in (0..60_000).step_by(7) {
            assert_eq!(parse_date(&Period::Day.render(f64::from(day))), Some(f64::from(day)));
        }
    }

    #[test]
    fn texts_tell_how_exact_they_are() {
        for (text, period) in [
            ("2026", Some(Period::Year)),
            ("2026-01", Some(Period::Month)),
            ("2026-01-15T08", Some(Period::Hour)),
            ("2026-01-15T08:30", Some(Period::Minute)),
            ("2026-01-15T08:30:05.123Z", Some(Period::Second)),
            ("2026-13", None),
            ("2026-01-15x", None),
            ("12345678", None),
            ("déjà vu", None),
        ] {
            assert_eq!(parse(text).map(|(_, period)| period), period, "{text}");
        }
    }

    #[test]
    fn a_span_touches_each_period_once() {
        let time = parse_date("2026-03-15").expect("a date");
        let months = Period::Month.touched(time, 40.0, 10);
        assert_eq!(months, Some(vec!["2026-03".to_owned(), "2026-02".to_owned()]));
        assert_eq!(Period::Second.touched(time, 40.0, 1000), None);
        assert_eq!(Period::Day.touched(time, 0.0, 1).map(|days| days.len()), Some(1));
    }
}
