//! What tests and benchmarks share: a real server process, a small signing HTTP client, and patience.
//!
//! Official SDKs test the protocol elsewhere; this client exists where thousands of requests, broken ones included,
//! must be sent with little work of the client's own.

mod client;
mod crowd;
pub mod golden;
pub mod levels;
mod machine;
mod patience;
mod random;
pub mod sample;
pub mod script;
mod server;
mod sign;
mod verify;

pub use client::{Client, Reply};
pub use crowd::{Crowd, Field, Model};
pub use machine::left_out;
pub use patience::{PATIENCE, eventually, eventually_async, has_reached, wait_for, wait_for_async};
pub use random::Random;
pub use server::Server;
pub use sign::{EMULATOR_KEY, Signer, decode_base64, development_token};
pub use verify::verify;
