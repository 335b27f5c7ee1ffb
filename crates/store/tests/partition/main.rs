//! One partition by itself: what its transactions do, what it indexes and remembers, and what it forgets in time.

mod ahead;
mod commits;
mod edits;
mod ground;
mod history;
mod ids;
mod index;
mod lifetimes;
mod lineage;
mod memory;
mod replay;
mod shared_places;
mod transactions;
