//! Whose part a request is: `traceparent`, as the W3C has it (<https://www.w3.org/TR/trace-context/>).

use http::HeaderMap;

#[derive(Debug, PartialEq, Eq)]
pub struct Context {
    pub trace_id: u128,
    pub span_id: u64,
    pub is_sampled: bool,
}

impl Context {
    /// None where there is none or a wrong one: the trace then begins here, as the standard wants it.
    pub fn of(headers: &HeaderMap) -> Option<Context> {
        let mut all = headers.get_all("traceparent").iter();
        let text = all.next()?.to_str().ok()?;
        if all.next().is_some() {
            return None;
        }
        Context::read(text.trim())
    }

    fn read(text: &str) -> Option<Context> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let version = hex(version, 2)?;
        // Later versions may have more behind; 255 is none.
        let is_right = version != 0xff && (version != 0 || parts.next().is_none());
        let context = Context {
            trace_id: hex(trace, 32)?,
            span_id: u64::try_from(hex(span, 16)?).ok()?,
            is_sampled: hex(flags, 2)? & 1 == 1,
        };
        (is_right && context.trace_id != 0 && context.span_id != 0).then_some(context)
    }
}

/// So many hexadecimal digits, in lower case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(is_digit))
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_of_the_standard_are_read() {
        let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = Context::read(own).expect("it is right");
        assert_eq!(
            (read.trace_id, read.span_id),
            (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331)
        );
        assert!(read.is_sampled);
        assert!(!Context::read(&own.replace("-01", "-00")).expect("it is right").is_sampled);
        // A later version may say more.
        assert!(Context::read(&(own.replacen("00", "cc", 1) + "-more")).is_some());
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-+7ad6b7169203331-01",
        ] {
            assert_eq!(Context::read(wrong), None, "{wrong}");
        }
    }
}
