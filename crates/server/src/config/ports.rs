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

/// Request units that tables may share.
pub fn shared_throughput(text: &str) -> Result<u32, String> {
    let units = text.parse().ok().filter(|units: &u32| *units >= 400 && units.is_multiple_of(100));
    units.ok_or_else(|| "expected a multiple of 100, at least 400".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_units_are_hundreds() {
        assert_eq!(shared_throughput("1000"), Ok(1000));
        assert!(["300", "450", "x", ""].iter().all(|text| shared_throughput(text).is_err()));
    }

    #[test]
    fn a_port_is_a_number_or_none() {
        assert_eq!("8902".parse(), Ok(PortChoice::Number(8902)));
        assert_eq!("none".parse(), Ok(PortChoice::Off));
        assert!("".parse::<PortChoice>().is_err() && "70000".parse::<PortChoice>().is_err());
    }
}
