//! Figures as people read them.

const KB: f64 = 1024.0;

/// `7.5 GB`; a gigabyte is 1024 cubed bytes, as in the limits.
pub fn bytes(bytes: f64) -> String {
    let units = ["bytes", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut amount = bytes;
    let mut unit = 0;
    while amount >= KB && unit + 1 < units.len() {
        amount /= KB;
        unit += 1;
    }
    format!("{} {}", short(amount), units[unit])
}

/// `40 days`, `7 months`, `2.7 years`.
pub fn days(days: f64) -> String {
    let of = |amount: f64, unit: &str| {
        let amount = short(amount);
        let plural = if amount == "1" { "" } else { "s" };
        format!("{amount} {unit}{plural}")
    };
    match days {
        _ if days < 60.0 => of(days.round(), "day"),
        _ if days < 700.0 => of((days * 12.0 / 365.25).round(), "month"),
        _ => of((days * 10.0 / 365.25).round() / 10.0, "year"),
    }
}

/// A whole number with commas between thousands.
pub fn count(number: f64) -> String {
    let digits = format!("{:.0}", number.abs().min(1e18));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of one as whole percents, and never 100 or 0 for what is only nearly so.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        _ if percent > 0.0 && percent < 1.0 => "under 1 %".to_owned(),
        _ if percent < 100.0 => format!("{:.0} %", percent.min(99.0)),
        _ => format!("{percent:.0} %"),
    }
}

/// About three digits, without zeros behind the point.
pub fn short(number: f64) -> String {
    let text = match number.abs() {
        size if size >= 1000.0 => return count(number),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// So many significant digits, so that a report does not pretend to more.
pub fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let scale = 10f64.powi(3 - number.abs().log10().floor() as i32);
    let rounded = (number * scale).round() / scale;
    if rounded.is_finite() { rounded } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(bytes(7.5 * KB * KB * KB), "7.5 GB");
        assert_eq!(bytes(0.0), "0 bytes");
        assert_eq!(bytes(f64::MAX).split(' ').next_back(), Some("EB"));
        assert_eq!(days(974.0), "2.7 years");
        assert_eq!(days(1.0), "1 day");
        assert_eq!(days(91.0), "3 months");
        assert_eq!(count(18_000.0), "18,000");
        assert_eq!(count(123.0), "123");
        assert_eq!([0.001, 0.333, 0.999, 1.0].map(percent), ["under 1 %", "33 %", "99 %", "100 %"]);
        assert_eq!([12.34567, 0.000123456, 98765.0].map(rounded), [12.35, 0.0001235, 98770.0]);
    }
}
