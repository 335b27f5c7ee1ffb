//! HEXOFBASE64, a function of ours: by it other protocols compare bytes, which are stored as base64, in their order.

use super::item::sextet;
use super::{Function, function, text};

pub(super) static FUNCTIONS: [Function; 1] = [function("HEXOFBASE64", 1, 1, |args| text(hex(args.str(0)?)?))];

/// Two hexadecimal digits for each byte; nothing if the text is not base64.
fn hex(base64: &str) -> Option<String> {
    let digits = base64.trim_end_matches('=');
    let padding = base64.len() - digits.len();
    if !base64.len().is_multiple_of(4) || padding > 2 || digits.contains('-') {
        return None;
    }
    let mut out = String::with_capacity(digits.len() / 4 * 6 + 4);
    let (mut held, mut bits) = (0u32, 0);
    for digit in digits.bytes() {
        held = held << 6 | u32::from(sextet(digit)?);
        bits += 6;
        // A hexadecimal digit has four bits.
        while bits >= 4 {
            bits -= 4;
            out.push(char::from_digit(held >> bits & 0xF, 16)?);
        }
    }
    // What is left of the last digit is no whole byte.
    out.truncate(out.len() & !1);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_becomes_digits_in_the_order_of_the_bytes() {
        for (base64, wanted) in [
            ("", Some("")),
            ("AA==", Some("00")),
            ("AP8=", Some("00ff")),
            ("YmluYXJ5", Some("62696e617279")),
            ("+/8=", Some("fbff")),
            ("A", None),
            ("AA=", None),
            ("A===", None),
            ("A*==", None),
            ("-/8=", None),
        ] {
            assert_eq!(hex(base64).as_deref(), wanted, "{base64}");
        }
    }
}
