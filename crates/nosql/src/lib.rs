//! The NoSQL REST protocol: parse, authenticate, call `Db`, map the error, answer.
//!
//! A request passes through these modules in this order: [`headers`] reads all headers once, [`router`]
//! turns the path into an [`router::Endpoint`], [`auth`] finds out who asks, [`access`] whether they may, the
//! body is read under its limits, one handler calls `Db`, and [`respond`] writes the answer. Whatever goes wrong
//! on the way becomes a [`errors::Refusal`], which is mapped to the wire in one place.

mod access;
mod account;
mod address;
mod audit;
mod auth;
mod beside;
mod binary_json;
mod call;
mod children;
mod conflicts;
mod containers;
mod databases;
mod envelope;
mod errors;
mod gateway;
#[cfg(test)]
mod golden;
mod headers;
mod hybrid_row;
mod items;
mod offers;
mod query_spec;
mod ranges;
mod resource_query;
mod respond;
mod rntbd;
mod router;
mod scripts;
mod throughput;

pub use beside::{Denial, discard_body, read_body, sign_beside};
pub use gateway::{Direct, Gateway, Options};
pub use rntbd::{Ended, Observer, RequestTime, begins_as_direct};
