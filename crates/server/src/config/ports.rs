//! Ports of APIs that the server can do without.

use std::str::FromStr;

/// What an operator says about a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChoice {
    Number(u16),
    /// The API is left out.
    Off,
}

impl FromStr for PortChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<PortChoice, String> {
        match text {
            "none" => Ok(PortChoice::Off),
            text => text.parse().map(PortChoice::Number).map_err(|_| "expected a port or `none`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_number_or_none() {
        assert_eq!("8902".parse(), Ok(PortChoice::Number(8902)));
        assert_eq!("none".parse(), Ok(PortChoice::Off));
        assert!("".parse::<PortChoice>().is_err() && "70000".parse::<PortChoice>().is_err());
    }
}
