//! Generated documents, queries and indexing policies, and what is needed to judge the answers.
//!
//! Documents and queries are drawn from one small world of property names and values, so that most queries
//! find something and the awkward cases meet often: missing properties, one property with values of many types,
//! strings that differ only behind the place where index terms are cut, numbers that doubles cannot tell apart.
//! Nothing here knows the database; it is text and JSON, and a seed repeats all of it.

mod answer;
mod document;
mod filter;
mod hash;
mod merge;
mod place;
mod policy;
mod query;
mod shape;

pub use answer::{Expected, canonical, order};
pub use document::document;
pub use merge::{MergePlan, merge};
pub use place::{COMPUTED, key};
pub use policy::Policy;
pub use query::{Query, condition, query};
