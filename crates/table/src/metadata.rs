//! How much an answer tells about its values: the three levels of `Accept`.

/// What an answer tells besides values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metadata {
    None,
    Minimal,
    Full,
}

impl Metadata {
    /// The level that a request asks for: in its `Accept` header, or by `$format`.
    pub fn of(accept: Option<&str>, format: Option<&str>) -> Metadata {
        let asked = format.or(accept).unwrap_or_default();
        let squeezed: String = asked.chars().filter(|letter| !letter.is_whitespace()).collect();
        match squeezed.to_ascii_lowercase() {
            text if text.contains("odata=nometadata") => Metadata::None,
            text if text.contains("odata=fullmetadata") => Metadata::Full,
            _ => Metadata::Minimal,
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Metadata::None => "application/json; odata=nometadata",
            Metadata::Minimal => "application/json; odata=minimalmetadata",
            Metadata::Full => "application/json; odata=fullmetadata",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_letter_case_do_not_matter() {
        for (accept, format, wanted) in [
            (None, None, Metadata::Minimal),
            (Some("application/json"), None, Metadata::Minimal),
            (Some("application/json; odata=nometadata"), None, Metadata::None),
            (Some("application/json;odata=FullMetadata"), None, Metadata::Full),
            (
                Some("application/json;odata=nometadata"),
                Some("application/json;odata=fullmetadata"),
                Metadata::Full,
            ),
        ] {
            assert_eq!(Metadata::of(accept, format), wanted, "{accept:?} {format:?}");
        }
    }
}
