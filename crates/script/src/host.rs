//! What a script can do to the collection it belongs to. The caller implements it.

/// The collection as one script sees it: one logical partition, a snapshot and the script's own writes.
///
/// Calls are synchronous and come in the order in which the script made them. Nothing the host does may be visible
/// to others before the call of the script has succeeded. Bodies are JSON text that came from the script: the host
/// checks it as it checks the body of a request, and gives an item without `id` one unless the options forbid it.
pub trait Host {
    fn collection(&self) -> Collection;
    /// `link` is what the script gave: a self link or a link of names, of an item of this collection if it is valid.
    fn read(&mut self, link: &str, if_none_match: Option<&str>) -> Answer;
    /// One page of all items, or of the results of a query (`{"query": ..., "parameters": [...]}`). The body of the
    /// reply is a JSON array.
    fn page(&mut self, feed: Feed<'_>) -> Answer;
    fn write(&mut self, write: Write<'_>) -> Answer;
}

/// The collection as its caller describes it: its links, and how full it is.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// By resource ids: `dbs/AAAA==/colls/AAAAAA==/`.
    pub self_link: String,
    /// By names, without a slash at either end: `dbs/shop/colls/orders`.
    pub alt_link: String,
    /// What post-triggers are told, in the form of the headers that clients get.
    pub quota: Quota,
}

/// How much of something there may be, and how much there is.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    pub most: String,
    pub used: String,
}

pub struct Feed<'a> {
    pub link: &'a str,
    /// Absent when all items are read.
    pub query: Option<&'a str>,
    pub page_size: Option<u32>,
    pub continuation: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    Create,
    Upsert,
    Replace,
    Delete,
}

pub struct Write<'a> {
    pub kind: WriteKind,
    /// Of the collection for creates and upserts, of the item otherwise.
    pub link: &'a str,
    /// Empty for deletes.
    pub body: &'a str,
    pub options: WriteOptions,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The write happens only if the item still has this tag.
    pub etag: Option<String>,
    /// `default`, `include` or `exclude`.
    pub index_action: Option<String>,
    pub disable_automatic_id: bool,
}

pub enum Answer {
    /// Out of time or request units: nothing was done, and the script is told `false`.
    NotAccepted,
    Done(Result<Reply, Refusal>),
}

impl Answer {
    pub fn done(reply: Reply) -> Answer {
        Answer::Done(Ok(reply))
    }

    pub fn refused(status: u16, message: impl Into<String>) -> Answer {
        Answer::Done(Err(Refusal { status, message: message.into() }))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// JSON: the item with its system properties, or an array of items or results; empty for deletes.
    pub body: String,
    /// Where the next page starts.
    pub continuation: Option<String>,
    /// The item still has the tag it was asked with; there is no body.
    pub not_modified: bool,
}

/// What the callback's error says: its number and its body.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub status: u16,
    pub message: String,
}
