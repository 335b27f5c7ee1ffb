//! Which partition a client in direct mode talks to: the path that it was given with an address, and sends back in every
//! frame. All partitions are at one port, so the path alone tells them apart.
//!
//! ```text
//!   /apps/Orrery/services/Server/partitions/ehszALxRRgA=-3/replicas/1p
//!                                           container    |          primary or secondary
//!                                                        range
//! ```

use orrery_cluster::store::Lsn;
use orrery_cluster::{Catalog, Container, Db, RangeToken, Rid, SINGLE_REGION_VERSION};

use crate::address::rid_of_length;
use crate::errors::{Gone, Own, Refusal};
use crate::items::session;

const BEFORE: &str = "/apps/Orrery/services/Server/partitions/";
const MASTER: &str = "master";

/// A partition as a client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where the catalog is.
    Master,
    Range {
        container: Rid,
        range: u32,
    },
    /// None that was ever told, or by another server.
    Elsewhere,
}

/// How far a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub range: Option<u32>,
    pub lsn: Lsn,
    pub item: Option<Lsn>,
}

impl Place {
    pub fn read(path: &str) -> Place {
        let partition = path.strip_prefix(BEFORE).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if partition == MASTER {
            return Place::Master;
        }
        let read = || {
            let (container, range) = partition.rsplit_once('-')?;
            Some(Place::Range { container: rid_of_length(container, 8)?, range: range.parse().ok()? })
        };
        read().unwrap_or(Place::Elsewhere)
    }

    /// The name of the partition.
    pub fn partition(&self) -> String {
        match self {
            Place::Range { container, range } => format!("{container}-{range}"),
            Place::Master | Place::Elsewhere => MASTER.to_owned(),
        }
    }

    /// The path of one of its replicas.
    pub fn replica(&self, is_primary: bool) -> String {
        let replica = if is_primary { "1p" } else { "2s" };
        format!("{BEFORE}{}/replicas/{replica}/", self.partition())
    }

    /// How far the partition is, if it is there: for answers that do not say it themselves.
    pub fn position(&self, db: &Db, catalog: &Catalog) -> Option<Position> {
        match self {
            Place::Master => Some(Position { range: None, lsn: db.catalog_lsn(), item: None }),
            Place::Range { container, range } => {
                let lsn = catalog.container_by_rid(*container)?.lsn_of(*range)?;
                Some(Position { range: Some(*range), lsn, item: None })
            }
            Place::Elsewhere => None,
        }
    }

    /// Refuses a request in a container whose client must look anew where that is. `known` is the RID that it takes for the
    /// container's. One that names the range is left to its handler, which knows what became of ranges.
    pub fn check(
        &self,
        container: &Container,
        known: Option<&str>,
        names_range: bool,
    ) -> Result<(), Refusal> {
        let rid = container.resource.rid;
        if known.is_some_and(|known| known.as_bytes() != rid.text().as_bytes()) {
            return Err(Own::Gone(Gone::Container).into());
        }
        match *self {
            Place::Range { container: at, range } if at == rid => {
                match names_range || container.lsn_of(range).is_some() {
                    true => Ok(()),
                    false => Err(Own::Gone(Gone::Partition).into()),
                }
            }
            _ => Err(Own::Gone(Gone::Replica).into()),
        }
    }
}

impl Position {
    /// For answers to those who have not shown that they may ask. Clients take no answer without a position, nor one that is
    /// behind what they know already, so they are told what they said themselves.
    pub fn as_claimed(session: Option<&str>) -> Position {
        let token = session.and_then(|text| session::parse(text).ok());
        let claimed = token.into_iter().flat_map(|token| token.ranges).map(|range| range.lsn).max();
        Position { range: None, lsn: claimed.unwrap_or(Lsn(1)).max(Lsn(1)), item: None }
    }

    /// The token of the session, without the range that the client puts in front of it.
    pub fn push_session(&self, out: &mut String) {
        let (range, version) = (self.range.unwrap_or_default(), Some(SINGLE_REGION_VERSION));
        session::write_state(&RangeToken { range, version, lsn: self.lsn, regions: Vec::new() }, out);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_come_back_as_they_went() {
        let container = Rid::container(Rid::database(7), 9);
        for place in
            [Place::Master, Place::Range { container, range: 0 }, Place::Range { container, range: 41 }]
        {
            for is_primary in [true, false] {
                let path = place.replica(is_primary);
                assert_eq!(Place::read(&path), place);
                // Clients leave out the slash at the end.
                assert_eq!(Place::read(path.trim_end_matches('/')), place);
            }
        }
    }

    #[test]
    fn other_paths_are_elsewhere() {
        for path in [
            "",
            "/",
            "/apps/DocDbApp/services/DocDbServer0/partitions/master/replicas/1p",
            "/apps/Orrery/services/Server/partitions/x-1/replicas/1p",
            "/apps/Orrery/services/Server/partitions/AAAAAYAAAAE=-/replicas/1p",
            "/apps/Orrery/services/Server/partitions/AAAAAYAAAAE=-99999999999/replicas/1p",
        ] {
            assert_eq!(Place::read(path), Place::Elsewhere, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(rest in "\\PC{0,60}") {
            let _ = Place::read(&rest);
            let _ = Place::read(&format!("{BEFORE}{rest}"));
        }
    }
}
