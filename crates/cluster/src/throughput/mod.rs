//! Throughput as operators know it: what an offer means for the budgets of partitions, and what is used of it.
//!
//! An offer is given to a container (or to a database whose containers share it) and divided over the physical
//! partitions, evenly unless an operator says otherwise. No partition gets more than one can give, so an offer that
//! asks for more than the partitions can carry is *pending*. That is never stored: it follows from the number of
//! partitions, and ends by itself when the container has been split often enough.
//!
//! What an operator sets besides the offer ([`Settings`]) is a record of its own in the catalog. Shares are kept by
//! the id that a partition had then; those that came from it by splits and merges inherit, see [`shares`].
//!
//! The highest use of each hour ([`Hours`]) is what the service bills for autoscale. Budgets remember their highest
//! second until one task asks for it, so the path of a request knows nothing of hours.

mod budgets;
mod hours;
mod lane;
mod scale;
mod settings;
mod shares;

pub use crate::throttle::BudgetUsage;
pub use budgets::PartitionBudget;
pub use hours::{Hour, Hours};
pub(crate) use lane::{Claim, KeyMark};
pub use lane::{Lane, Priority};
pub use scale::OfferStatus;
pub use settings::{BucketLimit, Settings, Share};
pub use shares::Redistribution;
