//! What a group holds in memory until it is written, and from whom it has that.
//!
//! A small request can make a partition hold much: a batch of deletes brings some thousand bytes and loads two hundred
//! megabytes, and one item of numbers has hundreds of thousands of index entries. So a group counts what each operation
//! loads and makes, and asks its lender *before* it holds more than it was lent. What counts:
//!
//! ```text
//!   a version that was read or made    its document, and the terms that its index has for it
//!   a version that is to be written    its stored form, once more where the container keeps a history
//!   an entry that comes or goes        its key, and its place in the batch
//! ```
//!
//! What is brought along is held by those who brought it, and every group may hold a little that nobody has lent: groups
//! of small writes are worked out whatever others hold.

use crate::indexing::IndexingPolicy;
use crate::limits::{GROUP_UNCOUNTED_BYTES, WRITES_STEP_BYTES};
use crate::terms::TermsSize;
use crate::{Fault, Item, ItemKey};

/// What an entry takes in a batch besides its key: its place there, and what the allocator adds to the key.
const ENTRY_BYTES: u64 = 104;
/// What a key has besides the place and the term: numbers, and the escapes of the place.
const KEY_HEAD_BYTES: u64 = 24;

/// Who lends a group the memory that it holds.
pub trait Lender: Send + Sync {
    /// What one transaction may hold, whatever others do.
    fn most(&self) -> u64;
    /// Lends so many bytes more, or nothing.
    fn lend(&self, bytes: u64) -> bool;
}

/// What was lent to a group, and what of it is spent.
pub(crate) struct Funds<'a> {
    lender: Option<&'a dyn Lender>,
    /// Whether all that it holds is one transaction.
    is_one: bool,
    pub ledger: Ledger,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ledger {
    lent: u64,
    spent: u64,
    /// All that the group holds, whoever pays for it.
    held: u64,
}

/// What a transaction holds so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    held: u64,
    /// What it needs not be lent, because it is held already by those who brought it.
    own: u64,
    /// It may be as large as it is, because it takes away what is there.
    is_endless: bool,
}

impl Account {
    pub fn with(own: u64) -> Account {
        Account { own, ..Account::default() }
    }

    pub fn endless(own: u64) -> Account {
        Account { own, is_endless: true, ..Account::default() }
    }

    fn owed(&self) -> u64 {
        self.held.saturating_sub(self.own)
    }
}

impl Ledger {
    /// Of a group that may hold so much, besides what every group may.
    pub fn with(own: u64) -> Ledger {
        Ledger { lent: GROUP_UNCOUNTED_BYTES + own, spent: 0, held: 0 }
    }

    pub fn held(&self) -> u64 {
        self.held
    }
}

impl<'a> Funds<'a> {
    pub fn none() -> Funds<'a> {
        Funds { lender: None, is_one: false, ledger: Ledger::with(0) }
    }

    pub fn of_many(lender: &'a dyn Lender) -> Funds<'a> {
        Funds { lender: Some(lender), ..Funds::none() }
    }

    pub fn of_one(lender: Option<&'a dyn Lender>, ledger: Ledger) -> Funds<'a> {
        Funds { lender, is_one: true, ledger }
    }

    pub fn held(&self) -> u64 {
        self.ledger.held
    }

    /// To be asked before a transaction holds so many bytes more.
    pub fn hold(&mut self, account: &mut Account, bytes: u64) -> Result<(), Fault> {
        account.held += bytes;
        let Some(lender) = self.lender else { return Ok(()) };
        let Ledger { lent, spent, .. } = self.ledger;
        let mut owed = account.owed();
        if spent + owed <= lent {
            return Ok(());
        }
        let most = lender.most();
        let all = account.held + if self.is_one { spent } else { 0 };
        if all > most {
            if !account.is_endless {
                return Err(Fault::TooMuchMemory { bytes: all, most });
            }
            owed = owed.min(most.saturating_sub(account.own));
        }
        let more = (spent + owed).saturating_sub(lent);
        let lend = |bytes: u64| lender.lend(bytes).then_some(bytes);
        match lend(more.next_multiple_of(WRITES_STEP_BYTES)).or_else(|| lend(more)) {
            Some(bytes) => self.ledger.lent += bytes,
            None => return Err(Fault::NoMemory { bytes: account.held }),
        }
        Ok(())
    }

    /// A transaction stays in the group, with all that it holds.
    pub fn keep(&mut self, account: &Account) {
        self.ledger.spent += account.owed();
        self.ledger.held += account.held;
    }
}

/// What a version takes, as far as its terms are known.
pub(super) fn of_version(item: &Item, terms: TermsSize) -> u64 {
    item.doc.bytes().len() as u64 + terms.held_bytes()
}

/// What the entries take by which two versions differ.
pub(super) fn of_changes(key: &ItemKey, changed: TermsSize) -> u64 {
    let place = key.epk.as_bytes().len() + key.id.len();
    changed.entries * (ENTRY_BYTES + KEY_HEAD_BYTES + place as u64) + changed.bytes
}

/// What an index takes that has all entries of an item to write, and nothing of them yet.
pub(super) fn of_index(key: &ItemKey, item: &Item, policy: &IndexingPolicy) -> u64 {
    let size = TermsSize::of(item, policy);
    size.held_bytes() + of_changes(key, size)
}
