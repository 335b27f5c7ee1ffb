//! What a request cost and which partition served it: part of every answer, also of refusals.

pub use orrery_prices::{Charge, ChargeLine};
use orrery_store::Lsn;

#[derive(Clone, Debug, Default)]
pub struct Receipt {
    pub charge: Charge,
    /// The partition that answered; none for requests on the catalog.
    pub served: Option<Served>,
}

#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The id of the partition key range, as in `pkranges`.
    pub range_id: u32,
    /// How far the partition is; the client's session token is made of these two.
    pub lsn: Lsn,
    /// The write that produced the item in the answer.
    pub item_lsn: Option<Lsn>,
}
