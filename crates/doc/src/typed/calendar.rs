//! Days and times as text.

use std::fmt::Write as _;

use super::{Duration, TimeOfDay};

const MILLISECONDS_OF_DAY: i64 = 86_400_000;

/// A time as SQL's own functions write it: `2020-01-02T03:04:05.0060000Z`.
pub(super) fn date_text(milliseconds: i64) -> String {
    let mut out = day_text(milliseconds.div_euclid(MILLISECONDS_OF_DAY));
    let rest = milliseconds.rem_euclid(MILLISECONDS_OF_DAY);
    let (seconds, fraction) = (rest / 1000, rest % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let _ = write!(out, "T{hour:02}:{minute:02}:{second:02}.{fraction:03}0000Z");
    out
}

/// A day since 1970 as `2020-01-02`. Years of other than four digits have a sign and at least six, as ISO 8601 has it.
pub(super) fn day_text(days: i64) -> String {
    let (year, month, day) = civil(days);
    if (0..=9999).contains(&year) {
        return format!("{year:04}-{month:02}-{day:02}");
    }
    format!("{year:+07}-{month:02}-{day:02}")
}

/// The date of a day in the Gregorian calendar. Years begin in March here, so that the day that some years have more
/// is the last; 400 years always have the same number of days.
fn civil(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_ERA: i64 = 146_097;
    let from_march = days + 719_468;
    let era = from_march.div_euclid(DAYS_OF_ERA);
    let day_of_era = from_march.rem_euclid(DAYS_OF_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

pub(super) fn time_text(time: TimeOfDay) -> String {
    let (seconds, fraction) = (time.nanoseconds() / 1_000_000_000, time.nanoseconds() % 1_000_000_000);
    format!("{:02}:{:02}:{:02}.{fraction:09}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A duration as CQL writes it: `1y2mo3d4h5m6s7ms8us9ns`.
pub(super) fn duration_text(duration: Duration) -> String {
    let is_negative = duration.months() < 0 || duration.days() < 0 || duration.nanoseconds() < 0;
    let mut out = String::from(if is_negative { "-" } else { "" });
    let months = u64::from(duration.months().unsigned_abs());
    let days = u64::from(duration.days().unsigned_abs());
    let mut rest = duration.nanoseconds().unsigned_abs();
    let mut put = |count: u64, unit: &str| {
        if count > 0 {
            let _ = write!(out, "{count}{unit}");
        }
    };
    put(months / 12, "y");
    put(months % 12, "mo");
    put(days, "d");
    for (size, unit) in [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ] {
        put(rest / size, unit);
        rest %= size;
    }
    put(rest, "ns");
    if out.is_empty() { "0s".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (-25_508, "1900-03-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-000001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+010000-01-01"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ] {
            assert_eq!(day_text(days), text);
        }
    }

    #[test]
    fn dates_have_seven_digits_behind_the_second() {
        assert_eq!(date_text(0), "1970-01-01T00:00:00.0000000Z");
        assert_eq!(date_text(-1), "1969-12-31T23:59:59.9990000Z");
        assert_eq!(date_text(1_577_934_245_006), "2020-01-02T03:04:05.0060000Z");
        assert_eq!(date_text(i64::MAX), "+292278994-08-17T07:12:55.8070000Z");
        assert_eq!(date_text(i64::MIN), "-292275055-05-16T16:47:04.1920000Z");
    }

    #[test]
    fn durations_have_the_units_of_cql() {
        let text = |months, days, nanoseconds| {
            duration_text(Duration::new(months, days, nanoseconds).expect("of one sign"))
        };
        assert_eq!(text(14, 3, 3_723_004_005_006), "1y2mo3d1h2m3s4ms5us6ns");
        assert_eq!(text(-1, 0, -1_000), "-1mo1us");
        assert_eq!(text(0, 0, 0), "0s");
        assert_eq!(
            text(i32::MIN, i32::MIN, i64::MIN).len(),
            "-178956970y8mo2147483648d2562047h47m16s854ms775us808ns".len()
        );
        assert_eq!(Duration::new(1, -1, 0), None);
    }
}
