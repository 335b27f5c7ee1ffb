//! `--seed`: what a server is given at its start.
//!
//! A file names databases with their containers, throughput and items. What is missing is made; what is there stays as it
//! is, items too, so that a server may be started with the same file again. It all goes through the server's own port, as
//! any client would do it: what a client may not write, a seed may not either.

use std::io::BufReader;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use http::Uri;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::admin::Admin;
use crate::client::account::{Account, Rate};
use crate::client::{ContainerName, Endpoint};
use crate::config::Config;
use crate::keys::AccountKeys;
use crate::limits;
use crate::transfer::{Items, KeyPaths, line_of};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Seed {
    databases: Vec<Database>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Database {
    id: String,
    throughput: Option<u32>,
    autoscale: Option<u32>,
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Container {
    id: String,
    /// A path, several, or the object of the protocol.
    partition_key: Value,
    throughput: Option<u32>,
    autoscale: Option<u32>,
    /// Items, or files of items, whose names are relative to this file.
    #[serde(default)]
    items: Vec<Box<RawValue>>,
    #[serde(default)]
    item_files: Vec<PathBuf>,
    /// What else the protocol has in a container: `defaultTtl`, `indexingPolicy`, `uniqueKeyPolicy`.
    #[serde(default)]
    properties: Map<String, Value>,
}

/// What was made.
#[derive(Default)]
struct Made {
    containers: u64,
    items: u64,
    items_there: u64,
}

/// Writes all seeds of the configuration. The caller has said that the server is not ready meanwhile, before it listened.
pub async fn plant(
    config: &Config,
    keys: &AccountKeys,
    address: SocketAddr,
    admin: &Admin,
) -> anyhow::Result<()> {
    if config.seeds.is_empty() {
        return Ok(());
    }
    let endpoint = Endpoint::here(own_url(address)?, keys.primary.clone());
    let mut account = Account::new(endpoint);
    for seed in &config.seeds {
        for file in files(seed)? {
            let made = plant_file(&mut account, &file)
                .await
                .with_context(|| format!("--seed {}", file.display()))?;
            let Made { containers, items, items_there } = made;
            tracing::info!(file = %file.display(), containers, items, items_there, "seeded");
        }
    }
    admin.seed(false);
    Ok(())
}

/// Where the server reaches itself.
fn own_url(address: SocketAddr) -> anyhow::Result<Uri> {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(format!("http://{}/", SocketAddr::new(ip, address.port())).parse()?)
}

/// The file itself, or the files of a folder in the order of their names.
fn files(seed: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot_read = || format!("--seed: cannot read {}", seed.display());
    if !std::fs::metadata(seed).with_context(cannot_read)?.is_dir() {
        return Ok(vec![seed.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(seed).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if path.extension().is_some_and(|ending| ending == "json") && path.is_file() {
            found.push(path);
        }
    }
    if found.is_empty() {
        bail!("--seed: there is no file that ends with .json in {}", seed.display());
    }
    found.sort();
    Ok(found)
}

async fn plant_file(account: &mut Account, file: &Path) -> anyhow::Result<Made> {
    let size = std::fs::metadata(file)?.len();
    if size > limits::SEED_BYTES_MAX {
        bail!("a seed has at most {} bytes; name larger data in itemFiles", limits::SEED_BYTES_MAX);
    }
    let seed: Seed = serde_json::from_slice(&std::fs::read(file)?)?;
    let mut made = Made::default();
    for database in seed.databases {
        let rate = rate(database.throughput, database.autoscale, &database.id)?;
        account.create(None, &json!({"id": database.id}), rate).await.with_context(|| database.id.clone())?;
        for container in database.containers {
            let name = ContainerName { database: database.id.clone(), container: container.id.clone() };
            let planted = plant_container(account, file, &name, container, &mut made).await;
            planted.with_context(|| name.to_string())?;
        }
    }
    Ok(made)
}

async fn plant_container(
    account: &mut Account,
    file: &Path,
    name: &ContainerName,
    container: Container,
    made: &mut Made,
) -> anyhow::Result<()> {
    let key = partition_key(container.partition_key)?;
    let paths = KeyPaths::of(&key)?;
    let mut body = container.properties;
    body.insert("id".to_owned(), name.container.clone().into());
    body.insert("partitionKey".to_owned(), key);
    let rate = rate(container.throughput, container.autoscale, &name.container)?;
    if account.create(Some(&name.database), &body.into(), rate).await? {
        made.containers += 1;
    }
    for (place, item) in container.items.iter().enumerate() {
        let item = Bytes::copy_from_slice(item.get().as_bytes());
        let planted = plant_item(account, name, &paths, item, made).await;
        planted.with_context(|| format!("item {}", place + 1))?;
    }
    for named in &container.item_files {
        let path = file.parent().unwrap_or(Path::new("")).join(named);
        let planted = plant_items(account, name, &paths, &path, made).await;
        planted.with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// A file of JSON lines or of an array, as `orrery export` writes them.
async fn plant_items(
    account: &mut Account,
    name: &ContainerName,
    paths: &KeyPaths,
    path: &Path,
    made: &mut Made,
) -> anyhow::Result<()> {
    let mut items = Items::new(BufReader::new(std::fs::File::open(path)?), 0);
    loop {
        let before = items.offset();
        let next = items.next().with_context(|| format!("line {}", line_of(path, before)))?;
        let Some((item, end)) = next else { return Ok(()) };
        let planted = plant_item(account, name, paths, item.into(), made).await;
        planted.with_context(|| format!("line {}", line_of(path, end)))?;
    }
}

async fn plant_item(
    account: &mut Account,
    name: &ContainerName,
    paths: &KeyPaths,
    item: Bytes,
    made: &mut Made,
) -> anyhow::Result<()> {
    let value: Value = serde_json::from_slice(&item)?;
    match account.create_item(name, paths.header(&value), item).await? {
        true => made.items += 1,
        false => made.items_there += 1,
    }
    Ok(())
}

fn rate(manual: Option<u32>, autoscale: Option<u32>, of: &str) -> anyhow::Result<Option<Rate>> {
    match (manual, autoscale) {
        (Some(_), Some(_)) => bail!("{of} has throughput or autoscale, not both"),
        (manual, autoscale) => Ok(manual.map(Rate::Manual).or(autoscale.map(Rate::Autoscale))),
    }
}

/// The object of the protocol, from the short forms too.
fn partition_key(value: Value) -> anyhow::Result<Value> {
    let paths = match value {
        Value::Object(_) => return Ok(value),
        Value::String(path) => vec![path],
        Value::Array(paths) => serde_json::from_value(Value::Array(paths))?,
        _ => bail!("partitionKey is a path, a list of paths, or an object"),
    };
    Ok(crate::create::partition_key(&paths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_short_forms() {
        let key = |value: Value| partition_key(value).expect("a key");
        assert_eq!(key(json!("/a")), json!({"paths": ["/a"], "kind": "Hash", "version": 2}));
        assert_eq!(key(json!(["/a", "/b"]))["kind"], "MultiHash");
        assert_eq!(key(json!({"paths": ["/a"]})), json!({"paths": ["/a"]}));
        assert!(partition_key(json!(7)).is_err() && partition_key(json!([7])).is_err());
    }

    #[test]
    fn a_server_on_all_addresses_reaches_itself_on_loopback() {
        let url = |address: &str| own_url(address.parse().expect("an address")).expect("a URL").to_string();
        assert_eq!(url("0.0.0.0:8081"), "http://127.0.0.1:8081/");
        assert_eq!(url("[::]:8081"), "http://[::1]:8081/");
        assert_eq!(url("192.0.2.7:1"), "http://192.0.2.7:1/");
    }
}
