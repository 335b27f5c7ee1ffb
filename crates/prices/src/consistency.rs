//! How sure a reader wants to be, which has its price.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consistency {
    Eventual,
    ConsistentPrefix,
    Session,
    BoundedStaleness,
    Strong,
}
