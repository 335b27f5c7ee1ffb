//! How the throughput of a container is divided over its physical partitions.
//!
//! A share is set for the partitions that exist at that time. Afterwards they split and merge, so each stored share is
//! divided evenly among all partitions that came from the one it was set for: a partition knows all its
//! ancestors. Two halves of a split get half each, a merge adds up, and the parts always make a whole.

use super::settings::Share;
use crate::error::{Error, Result};

/// A change of the distribution: some partitions get what they are told to, others make up for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Redistribution {
    /// Partitions and the RU/s that each shall have.
    pub targets: Vec<(u32, f64)>,
    /// Those that give, or take, the difference; all others when none are named.
    pub sources: Vec<u32>,
}

/// A partition as far as shares go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    pub id: u32,
    pub parents: &'a [u32],
}

/// The part of the whole that each partition has, in their order.
pub(crate) fn parts(shares: &[Share], members: &[Member<'_>]) -> Vec<f64> {
    let equal = 1.0 / members.len().max(1) as f64;
    if shares.is_empty() {
        return vec![equal; members.len()];
    }
    let mut parts = vec![0.0; members.len()];
    for share in shares {
        let descends = |member: &Member<'_>| member.id == share.id || member.parents.contains(&share.id);
        let heirs = members.iter().filter(|member| descends(member)).count().max(1) as f64;
        for (part, member) in parts.iter_mut().zip(members) {
            if descends(member) {
                *part += share.part / heirs;
            }
        }
    }
    // One that inherits nothing would have no budget, which is no limit: it gets an even share.
    parts.iter_mut().filter(|part| **part <= 0.0).for_each(|part| *part = equal);
    let whole: f64 = parts.iter().sum();
    parts.iter().map(|part| part / whole).collect()
}

impl Redistribution {
    /// The new shares of partitions that had `parts` of `throughput`, none of which may get more than `ceiling`.
    pub(crate) fn apply(
        &self,
        members: &[Member<'_>],
        parts: &[f64],
        throughput: f64,
        ceiling: f64,
    ) -> Result<Vec<Share>> {
        let mut units: Vec<f64> = parts.iter().map(|part| part * throughput).collect();
        let place = |id: u32| {
            let found = members.iter().position(|member| member.id == id);
            found.ok_or_else(|| Error::invalid(format!("There is no physical partition with the id {id}.")))
        };
        let mut sources = self.sources.iter().map(|id| place(*id)).collect::<Result<Vec<usize>>>()?;
        let mut taken = 0.0;
        let mut targets = Vec::with_capacity(self.targets.len());
        for &(id, wanted) in &self.targets {
            let at = place(id)?;
            if targets.contains(&at) || sources.contains(&at) {
                return Err(Error::invalid(format!("The physical partition {id} is named twice.")));
            }
            if !(wanted >= 1.0 && wanted <= ceiling) {
                return Err(Error::invalid(format!(
                    "The throughput of a physical partition is from 1 to {ceiling} RU/s; {wanted} is asked for the \
                     partition {id}."
                )));
            }
            taken += wanted - units[at];
            units[at] = wanted;
            targets.push(at);
        }
        if sources.is_empty() {
            sources = (0..members.len()).filter(|at| !targets.contains(at)).collect();
        }
        sources.dedup();
        if sources.is_empty() && taken.abs() > 0.5 {
            return Err(Error::invalid(format!(
                "The throughput of all physical partitions must add up to {throughput} RU/s."
            )));
        }
        let each = taken / sources.len().max(1) as f64;
        for at in sources {
            units[at] -= each;
            if !(units[at] >= 1.0 && units[at] <= ceiling) {
                return Err(Error::invalid(format!(
                    "The physical partition {} would be left with {} RU/s; it must be from 1 to {ceiling}.",
                    members[at].id, units[at]
                )));
            }
        }
        let share = |(member, units): (&Member<'_>, f64)| Share { id: member.id, part: units / throughput };
        Ok(members.iter().zip(units).map(share).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of partitions and of those that they came from.
    type Family = &'static [(u32, &'static [u32])];

    fn members(ids: Family) -> Vec<Member<'static>> {
        ids.iter().map(|(id, parents)| Member { id: *id, parents }).collect()
    }

    fn share(id: u32, part: f64) -> Share {
        Share { id, part }
    }

    fn rounded(parts: &[f64]) -> Vec<f64> {
        parts.iter().map(|part| (part * 1000.0).round() / 1000.0).collect()
    }

    #[test]
    fn without_shares_all_are_equal() {
        assert_eq!(parts(&[], &members(&[(0, &[]), (1, &[])])), [0.5, 0.5]);
    }

    #[test]
    fn children_share_what_their_parent_had_and_merges_add_up() {
        let shares = [share(0, 0.7), share(1, 0.2), share(2, 0.1)];
        let table: [(Family, Vec<f64>); 4] = [
            (&[(0, &[]), (1, &[]), (2, &[])], vec![0.7, 0.2, 0.1]),
            (&[(3, &[0]), (4, &[0]), (1, &[]), (2, &[])], vec![0.35, 0.35, 0.2, 0.1]),
            (&[(0, &[]), (5, &[1, 2])], vec![0.7, 0.3]),
            // A partition that split twice, and a merge across a split.
            (&[(6, &[0, 3]), (7, &[0, 3]), (8, &[0, 4, 1]), (2, &[])], vec![0.233, 0.233, 0.433, 0.1]),
        ];
        for (ids, wanted) in table {
            let now = parts(&shares, &members(ids));
            assert_eq!(rounded(&now), wanted);
            assert!((now.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn nobody_is_left_without_a_part() {
        let now = parts(&[share(0, 1.0)], &members(&[(0, &[]), (9, &[])]));
        assert!(now.iter().all(|part| *part > 0.1), "{now:?}");
    }

    #[test]
    fn targets_get_what_they_are_told_and_sources_make_up_for_it() {
        let all = members(&[(0, &[]), (1, &[]), (2, &[]), (3, &[])]);
        let equal = [0.25; 4];
        let change = |targets: &[(u32, f64)], sources: &[u32]| {
            let change = Redistribution { targets: targets.to_vec(), sources: sources.to_vec() };
            let shares = change.apply(&all, &equal, 8_000.0, 10_000.0)?;
            Ok(shares.iter().map(|share| (share.part * 8_000.0).round()).collect::<Vec<f64>>())
        };
        let good =
            |targets: &[(u32, f64)], sources: &[u32]| change(targets, sources).expect("a distribution");
        assert_eq!(good(&[(0, 5_000.0)], &[]), [5_000.0, 1_000.0, 1_000.0, 1_000.0]);
        assert_eq!(good(&[(0, 3_000.0)], &[2]), [3_000.0, 2_000.0, 1_000.0, 2_000.0]);
        assert_eq!(good(&[(0, 1_000.0)], &[1, 3]), [1_000.0, 2_500.0, 2_000.0, 2_500.0]);
        assert_eq!(
            good(&[(0, 5_000.0), (1, 1_000.0), (2, 1_000.0), (3, 1_000.0)], &[]),
            [5_000.0, 1_000.0, 1_000.0, 1_000.0]
        );
        for (targets, sources, why) in [
            (vec![(7, 100.0)], vec![], "no physical partition with the id 7"),
            (vec![(0, 100.0)], vec![9], "no physical partition with the id 9"),
            (vec![(0, 100.0), (0, 200.0)], vec![], "named twice"),
            (vec![(0, 100.0)], vec![0], "named twice"),
            (vec![(0, 0.0)], vec![], "from 1 to 10000"),
            (vec![(0, f64::NAN)], vec![], "from 1 to 10000"),
            (vec![(0, 10_001.0)], vec![], "from 1 to 10000"),
            (vec![(0, 5_000.0)], vec![1], "would be left with"),
            (vec![(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)], vec![], "add up to 8000"),
        ] {
            let error: Error = change(&targets, &sources).expect_err(why);
            assert!(error.kind.to_string().contains(why), "{}", error.kind);
        }
    }
}
