//! What requests cost and how much there may be of everything: numbers alone, which the rooms that serve requests keep to and
//! the advisor plans with.

mod charge;
mod consistency;
pub mod limits;
mod meter;
pub mod ru;

pub use charge::{Charge, ChargeLine};
pub use consistency::Consistency;
pub use meter::Meter;
