//! The typed value, its bytes, its order, JSON text in and out, and the effective partition key.
