//! Sizes and durations as people write them.

use std::time::Duration;

use super::DirectPort;
use crate::limits;

/// Reads a size: a whole number, optionally followed by KB, MB, GB, TB (powers of 1,000) or KiB, MiB,
/// GiB, TiB (powers of 1,024).
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        other => return Err(format!("unknown unit `{other}`; use B, KB, MB, GB, TB, KiB, MiB, GiB or TiB")),
    };
    let number: u64 = number.parse().map_err(|_| String::from("expected a whole number of bytes"))?;
    number.checked_mul(factor).ok_or_else(|| String::from("the size is too large"))
}

/// Reads a size that the server can work with.
pub fn memory_bytes(text: &str) -> Result<u64, String> {
    let least = orrery_cluster::limits::MEMORY_BYTES_MIN;
    match bytes(text)? {
        size if size < least => Err(format!("must be at least {}MiB", least >> 20)),
        size => Ok(size),
    }
}

/// Reads a duration in seconds; fractions are allowed, zero and absurd lengths are not.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.trim().parse().map_err(|_| String::from("expected a number of seconds"))?;
    let duration = Duration::try_from_secs_f64(number).map_err(|e| e.to_string())?;
    if duration < Duration::from_millis(1) || duration > limits::MAX_TIMEOUT {
        return Err(format!("must be between 0.001 and {} seconds", limits::MAX_TIMEOUT.as_secs()));
    }
    Ok(duration)
}

/// Reads where direct mode is served.
pub fn direct_port(text: &str) -> Result<DirectPort, String> {
    match text.trim() {
        "same" => Ok(DirectPort::Same),
        "none" => Ok(DirectPort::None),
        port => match port.parse() {
            Ok(port) => Ok(DirectPort::Own(port)),
            Err(_) => Err(String::from("expected `same`, `none` or a port")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_mode_is_on_a_port_or_on_none() {
        for (text, wanted) in [
            ("same", Some(DirectPort::Same)),
            ("none", Some(DirectPort::None)),
            ("10251", Some(DirectPort::Own(10_251))),
            ("0", Some(DirectPort::Own(0))),
            ("off", None),
            ("70000", None),
            ("", None),
        ] {
            assert_eq!(direct_port(text).ok(), wanted, "{text}");
        }
    }

    #[test]
    fn sizes_take_decimal_and_binary_units() {
        for (text, want) in [
            ("0", Some(0)),
            ("1024", Some(1024)),
            ("20GB", Some(20_000_000_000)),
            ("64 KiB", Some(65_536)),
            ("2TiB", Some(2 << 40)),
            ("", None),
            ("GB", None),
            ("-1", None),
            ("1.5GB", None),
            ("10 parsecs", None),
            ("99999999999TiB", None),
        ] {
            assert_eq!(bytes(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn timeouts_are_bounded_on_both_sides() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["0", "-1", "nan", "inf", "1e9", "ten"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
