//! The Table protocol: parse, authenticate, call `Db`, map the error, answer.
//!
//! A table is a container of the database `TablesDB` with the partition key `/'$pk'`; an entity is an item of it in the
//! shape that SQL sees ([`edm`]). A request passes through these modules in this order: [`router`] turns the address into
//! an [`router::Endpoint`], [`auth`] finds out who asks and what they may, one handler calls `Db` ([`tables`], [`entity`],
//! [`batch`]), and [`respond`] writes the answer. Whatever goes wrong on the way becomes a [`errors::Refusal`], which
//! is mapped to the wire in one place.

mod acl;
mod audit;
mod auth;
mod batch;
mod continuation;
mod edm;
mod entity;
mod errors;
mod filter;
mod gateway;
mod headers;
mod limits;
mod metadata;
mod moment;
mod parameters;
mod respond;
mod router;
mod service;
mod tables;
mod xml;

pub use gateway::{Gateway, Options};
pub use tables::DATABASE;
