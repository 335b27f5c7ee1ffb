//! The shapes in which APIs keep their items, where more than one gateway writes them.
//!
//! A container is made through one API, and its items have that API's shape. SQL reads them as they are, and may write
//! them too: then [`check`] says whether what is written is still an item of its API.

pub mod entity;

use orrery_cluster::Api;
use orrery_doc::Value;

/// What is wrong with an item that is written into a container of an API; the text names the place.
pub fn check(api: Api, item: Value<'_>) -> Result<(), String> {
    match api {
        Api::NoSql => Ok(()),
        Api::Table => entity::check(item),
        Api::Mongo | Api::Cassandra | Api::Gremlin => {
            Err("Items of this API cannot be written through the NoSQL API.".into())
        }
    }
}
