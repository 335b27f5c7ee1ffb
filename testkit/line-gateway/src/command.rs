//! The commands, each of which is parsed, given to the [`Db`] and answered here.

use std::sync::Arc;

use orrery_cluster::store::{Action, Effect, ItemId, Op, Precondition, Target};
use orrery_cluster::{AccessChoice, Container, Db, ItemOrder, PageOptions, ReadOptions, Scope, WriteOptions};
use orrery_doc::{Doc, PartitionKey, Value, encode_key};

use crate::add::Add;
use crate::limits::{PAGE_ITEMS, PAGE_TIME_MAX};
use crate::refusal::Refusal;
use crate::{find, notation, tables};

/// The field that names an item within its partition key.
const ID: &str = "_id";

/// The rows of an answer, and what is told at its end.
type Answer = Result<(String, String), Refusal>;

pub async fn run(db: &Db, line: &str) -> Answer {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let arguments = notation::read_all(rest)?;
    let arguments: Vec<Value<'_>> = arguments.iter().map(Doc::root).collect();
    match (word, arguments.as_slice()) {
        ("MAKE", [Value::Str(name), Value::Str(kind), Value::Int(units), keys, indexed]) => {
            let units =
                u32::try_from(*units).map_err(|_| Refusal::wrong("the units are not a number of RU/s"))?;
            let (keys, indexed) = (tables::texts(*keys), tables::texts(*indexed));
            let table = tables::make(db, name, kind, units, &keys, &indexed).await?;
            Ok((String::new(), format!("{} partitions", table.ranges().len())))
        }
        ("NEW", [Value::Str(name), item]) => write(db, name, *item, Action::Create).await,
        ("PUT", [Value::Str(name), item]) => write(db, name, *item, Action::Upsert).await,
        ("ADD", [Value::Str(name), item, Value::Str(field), Value::Int(amount)]) => {
            let add =
                |fresh| Action::Edit(Arc::new(Add { fresh, field: (*field).to_owned(), amount: *amount }));
            write(db, name, *item, add).await
        }
        ("DEL", [Value::Str(name), item]) => write(db, name, *item, |_| Action::Delete).await,
        ("GET", [Value::Str(name), item]) => get(db, name, *item).await,
        ("LIST", [Value::Str(name), item, Value::Int(page)]) => list(db, name, *item, *page).await,
        ("FIND", [Value::Str(name), query]) => find::run(db, &tables::find(db, name)?, *query).await,
        _ => Err(Refusal::wrong(format!("'{word}' is no command, or has other arguments"))),
    }
}

/// The key and the id of an item, by its own fields: equal values in the table's order are one key.
fn address(table: &Container, item: Value<'_>) -> Result<(PartitionKey, Target), Refusal> {
    let definition = &table.definition;
    let key = key_of(table, item)?;
    let id = item.get(ID);
    if id.is_undefined() {
        return Err(Refusal::wrong(format!("the item has no '{ID}'")));
    }
    let mut bytes = Vec::new();
    encode_key(id, definition.order, &mut bytes);
    let id = ItemId::new(bytes).map_err(|error| Refusal::wrong(error.to_string()))?;
    Ok((key, Target::Id(id)))
}

pub fn key_of(table: &Container, item: Value<'_>) -> Result<PartitionKey, Refusal> {
    let def = &table.definition.key;
    let doc = Doc::from_value(item);
    let key = PartitionKey::extract(def, doc.as_ref());
    key.check_length().map_err(|error| Refusal::wrong(error.to_string()))?;
    Ok(key)
}

async fn write(db: &Db, name: &str, item: Value<'_>, action: impl FnOnce(Doc) -> Action) -> Answer {
    let table = tables::find(db, name)?;
    let (key, target) = address(&table, item)?;
    let action = action(Doc::from_value(item));
    let op = Op { target, action, precondition: Precondition::None, indexed: true, unlinked: false };
    let reply = db.write(&table, &key, vec![op], &WriteOptions::default()).await?;
    let Some(outcome) = reply.outcomes.first() else { return Ok(Default::default()) };
    match outcome.effect {
        Effect::Deleted => Ok((String::new(), "deleted".to_owned())),
        Effect::Created => Ok((row(outcome.item.doc.root()), "created".to_owned())),
        _ => Ok((row(outcome.item.doc.root()), "replaced".to_owned())),
    }
}

async fn get(db: &Db, name: &str, item: Value<'_>) -> Answer {
    let table = tables::find(db, name)?;
    let (key, target) = address(&table, item)?;
    let consistency = db.account().consistency;
    let options = ReadOptions { consistency, session: None, precondition: Precondition::None };
    let reply = db.read(&table, &key, &target, &options).await?;
    Ok((row(reply.item.doc.root()), "found".to_owned()))
}

/// The items of one partition key in the order of their ids.
async fn list(db: &Db, name: &str, item: Value<'_>, page: i64) -> Answer {
    let table = tables::find(db, name)?;
    let scope = Scope::Key(key_of(&table, item)?);
    let mut options = page_options(db, page);
    let (mut rows, mut pages) = (String::new(), 0);
    loop {
        let page = db.read_feed(&table, &scope, &options).await?;
        pages += 1;
        rows.extend(page.items.iter().map(|item| row(item.doc.root())));
        options.continuation = page.continuation;
        if options.continuation.is_none() {
            return Ok((rows, format!("{pages} pages")));
        }
    }
}

pub fn page_options(db: &Db, items: i64) -> PageOptions {
    PageOptions {
        items_max: usize::try_from(items).ok().filter(|items| *items > 0).unwrap_or(PAGE_ITEMS),
        bytes_max: orrery_cluster::limits::PAGE_BYTES_MAX,
        time_max: PAGE_TIME_MAX,
        continuation: None,
        consistency: db.account().consistency,
        session: None,
        access: AccessChoice::Auto,
        properties: None,
        order: ItemOrder::Keys,
    }
}

pub fn row(value: Value<'_>) -> String {
    let mut out = "ROW ".to_owned();
    notation::write(value, &mut out);
    out.push('\n');
    out
}
