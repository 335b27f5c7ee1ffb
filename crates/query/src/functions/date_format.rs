//! Custom texts of points in time: `yyyy-MM-dd [HH:mm:ss]`.
//!
//! A run of one letter is a field, its length says how it is written; a backslash or quotes keep text
//! as it is, and so does everything that is no field.

use super::date_text::{Civil, TICKS_PER_DAY, TICKS_PER_SECOND};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Longest run of digits that a field writes.
const DIGITS: usize = 16;

pub(super) fn format_as(civil: Civil, pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '\\' => {
                let mut kept = rest[1..].chars();
                out.extend(kept.next());
                kept.as_str()
            }
            '\'' | '"' => match rest[1..].split_once(c) {
                Some((kept, behind)) => {
                    out.push_str(kept);
                    behind
                }
                None => {
                    out.push_str(&rest[1..]);
                    ""
                }
            },
            c => {
                let behind = rest.trim_start_matches(c);
                let run = rest.len() - behind.len();
                field(civil, c, run / c.len_utf8(), &mut out);
                behind
            }
        };
    }
    out
}

/// Writes one field; what is no field is text.
fn field(civil: Civil, letter: char, run: usize, out: &mut String) {
    let seconds = civil.ticks / TICKS_PER_SECOND;
    let hour = seconds / 3600;
    let hour_of_half = if hour % 12 == 0 { 12 } else { hour % 12 };
    match letter {
        'y' if run <= 2 => number(civil.year % 100, run, out),
        'y' => number(civil.year, run, out),
        'M' if run > 2 => name(MONTHS[(civil.month - 1) as usize], run, out),
        'M' => number(civil.month, run, out),
        'd' if run > 2 => name(DAYS[weekday(civil)], run, out),
        'd' => number(civil.day, run, out),
        'H' => number(hour, run, out),
        'h' => number(hour_of_half, run, out),
        'm' => number(seconds / 60 % 60, run, out),
        's' => number(seconds % 60, run, out),
        't' => out.push_str(&["AM", "PM"][usize::from(hour >= 12)][..run.min(2)]),
        'f' | 'F' if run <= 7 => fraction(civil.ticks % TICKS_PER_SECOND, run, letter == 'F', out),
        'K' => out.extend(std::iter::repeat_n('Z', run)),
        other => out.extend(std::iter::repeat_n(other, run)),
    }
}

fn number(value: i64, width: usize, out: &mut String) {
    let width = width.min(DIGITS);
    out.push_str(&format!("{value:0width$}"));
}

/// The short name, or with four letters or more the whole.
fn name(name: &str, run: usize, out: &mut String) {
    out.push_str(if run == 3 { &name[..3] } else { name });
}

fn fraction(ticks: i64, places: usize, trimmed: bool, out: &mut String) {
    let digits = format!("{ticks:07}");
    let digits = &digits[..places];
    out.push_str(if trimmed { digits.trim_end_matches('0') } else { digits });
}

fn weekday(civil: Civil) -> usize {
    // The first of January 1970 was a Thursday.
    let days = civil.to_ticks().unwrap_or_default().div_euclid(TICKS_PER_DAY);
    (days + 4).rem_euclid(7) as usize
}

#[cfg(test)]
mod tests {
    use super::super::date_text::parse;
    use super::*;

    #[test]
    fn fields_and_texts() {
        let civil = Civil::from_ticks(parse("2024-10-10T14:40:20.0500000Z").unwrap()).unwrap();
        for (pattern, expected) in [
            ("yyyyMMdd", "20241010"),
            ("yyyy-MM-dd [HH:mm:ss]", "2024-10-10 [14:40:20]"),
            ("To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.fff", "Today is: 2024-10-10T14:40:20.050"),
            ("ss.FFF|ss.F", "20.05|20."),
            ("yy M d h:mm tt", "24 10 10 2:40 PM"),
            ("dddd ddd MMMM MMM t", "Thursday Thu October Oct P"),
            ("'yyyy' \"MM\" 'open yyyy", "yyyy MM open yyyy"),
            ("é\\", "é"),
            ("", ""),
        ] {
            assert_eq!(format_as(civil, pattern), expected, "{pattern}");
        }
    }
}
