//! Expired items and unique keys on the way into a commit.
//!
//! An expired item is stored and yet not there. A transaction that writes where it stands, or takes a value that it holds at
//! a unique key, removes it first, in the same transaction: what readers no longer see must not stand in anybody's way,
//! and what is to be deleted must be deleted before something new takes its place.

use orrery_doc::Doc;

use super::funds::Account;
use super::{Draft, Group, Removal};
use crate::engine::Keyspace;
use crate::net_effect::Version;
use crate::unique::{Claim, Holders, decode_holders};
use crate::{Failed, Fault, Item, ItemId, ItemKey, Lsn, Meter, OpError, Outcome, keys};

impl Group<'_> {
    /// Deletes those of the items that are expired at this moment; others were written again or are gone. It ends where
    /// it would hold more than so many bytes, and may be asked again.
    pub fn purge(&mut self, items: &[ItemKey], now: u64, bytes_max: u64) -> Result<Vec<Outcome>, Failed> {
        let mut outcomes = Vec::with_capacity(items.len());
        let begun = self.held_bytes();
        for key in items {
            match self.purge_one(key, now) {
                Ok(outcome) => outcomes.extend(outcome),
                Err(Failed::Fault(Fault::NoMemory { .. })) if !outcomes.is_empty() => break,
                Err(error) => return Err(error),
            }
            if self.held_bytes() - begun >= bytes_max {
                break;
            }
        }
        Ok(outcomes)
    }

    fn purge_one(&mut self, key: &ItemKey, now: u64) -> Result<Option<Outcome>, Failed> {
        let mut draft = Draft { account: Account::endless(0), ..Draft::default() };
        let version = self.lookup(key, &mut draft)?;
        let Some(version) = version.filter(|version| self.is_over(version.item(), now)) else {
            return Ok(None);
        };
        let mut meter = Meter::default();
        let outcome = self.remove(key.clone(), version, Removal::Expiry, &mut draft, &mut meter)?;
        self.funds.keep(&draft.account);
        let lsn = Lsn(self.state.lsn.0 + 1);
        let time = self.state.next_time(now);
        self.apply(&key.epk, draft, lsn, time);
        Ok(Some(Outcome { meter, ..outcome }))
    }

    pub(super) fn is_over(&self, item: &Item, now: u64) -> bool {
        self.schema.lifetimes(now).is_over(&item.header)
    }

    /// The version if it is there for this request; if it is expired, it is removed.
    pub(super) fn unless_expired(
        &mut self,
        key: &ItemKey,
        version: Option<Version>,
        now: u64,
        draft: &mut Draft,
    ) -> Result<Option<Version>, Failed> {
        match version {
            Some(version) if self.is_over(version.item(), now) => {
                // The background would have done it, and nobody would have paid.
                let mut unpaid = Meter::default();
                self.remove(key.clone(), version, Removal::Expiry, draft, &mut unpaid)?;
                Ok(None)
            }
            version => Ok(version),
        }
    }

    /// Gives up what an item held at the unique keys and takes what it holds now.
    pub(super) fn claim(
        &mut self,
        key: &ItemKey,
        before: Option<&Doc>,
        after: Option<&Doc>,
        now: u64,
        draft: &mut Draft,
    ) -> Result<(), Failed> {
        let unique = &self.schema.unique;
        if unique.is_empty() {
            return Ok(());
        }
        let old = before.map_or_else(Vec::new, |doc| unique.claims(doc));
        let new = after.map_or_else(Vec::new, |doc| unique.claims(doc));
        for claim in old.iter().filter(|claim| !new.contains(claim)) {
            let entry = self.entry(key, claim);
            let mut holders = self.holders(&entry, draft)?;
            holders.retain(|id| *id != key.id);
            draft.holders.insert(entry, holders);
        }
        if after.is_none() {
            return Ok(());
        }
        for claim in new.iter().filter(|claim| !old.contains(claim)) {
            let entry = self.entry(key, claim);
            for id in self.holders(&entry, draft)? {
                self.yield_to(key, claim, id, now, draft)?;
            }
            let mut holders = self.holders(&entry, draft)?;
            holders.push(key.id.clone());
            draft.holders.insert(entry, holders);
        }
        Ok(())
    }

    /// Makes sure that the item of this id, whose entry is the same, does not have the same values.
    fn yield_to(
        &mut self,
        key: &ItemKey,
        claim: &Claim,
        id: ItemId,
        now: u64,
        draft: &mut Draft,
    ) -> Result<(), Failed> {
        let other = ItemKey { epk: key.epk.clone(), id };
        let stored = self.lookup(&other, draft)?;
        let Some(holder) = self.unless_expired(&other, stored, now, draft)? else { return Ok(()) };
        // Keys that share a place are one logical partition, so the holder's key does not matter.
        let has_values = self.schema.unique.claims(&holder.item().doc).contains(claim);
        if has_values { Err(OpError::UniqueConflict.into()) } else { Ok(()) }
    }

    fn entry(&self, key: &ItemKey, claim: &Claim) -> Vec<u8> {
        keys::unique(self.partition.spec.rid_generation, &key.epk, &claim.tail())
    }

    /// Who holds an entry, as this transaction sees it.
    fn holders(&mut self, entry: &[u8], draft: &Draft) -> Result<Holders, Fault> {
        if let Some(holders) = draft.holders.get(entry).or_else(|| self.entries.get(entry)) {
            return Ok(holders.clone());
        }
        let stored = self.snapshot.get(Keyspace::Index, entry)?;
        let holders = match stored {
            Some(bytes) => decode_holders(&bytes)
                .ok_or_else(|| Fault::Damaged("an entry of a unique key is not readable".into()))?,
            None => Holders::new(),
        };
        self.entries.load(entry.to_vec(), holders.clone());
        Ok(holders)
    }
}
