//! Holds one physical partition: items, index, feed, transactions, request-unit metering.

pub mod engine;
