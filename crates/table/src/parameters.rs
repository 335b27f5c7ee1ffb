//! The parameters behind the question mark, and names as addresses carry them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::errors::Refusal;

/// All parameters of an address, decoded, in their order.
pub(crate) struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    pub fn read(query: Option<&'a str>) -> Result<Parameters<'a>, Refusal> {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode_form(name)?, decode_form(value)?))
        });
        decoded.collect::<Result<_, Refusal>>().map(Parameters)
    }

    /// The first value of a name. Empty ones are as good as none.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_ref()).filter(|value| !value.is_empty())
    }
}

/// A piece of a query: a plus sign stands for a blank.
fn decode_form(text: &str) -> Result<Cow<'_, str>, Refusal> {
    if text.contains('+') {
        return Ok(Cow::Owned(decode(&text.replace('+', " "))?.into_owned()));
    }
    decode(text)
}

pub(crate) fn decode(text: &str) -> Result<Cow<'_, str>, Refusal> {
    percent_decode_str(text).decode_utf8().map_err(|_| Refusal::bad_address())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_found_by_name() {
        let read = Parameters::read(Some("$filter=a%20eq+%27x%26y%27&$top=&x&$top=5")).expect("well formed");
        assert_eq!(read.get("$filter"), Some("a eq 'x&y'"));
        assert_eq!(read.get("$top"), None);
        assert_eq!(read.get("x"), None);
        assert!(Parameters::read(Some("a=%FF")).is_err());
        assert!(Parameters::read(None).expect("nothing").get("a").is_none());
    }
}
