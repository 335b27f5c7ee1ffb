//! `orrery query`: asks a container and prints its rows.

use std::io::{IsTerminal, Read, Write};

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use crate::client::account::{Account, Headers};
use crate::client::{ContainerName, Endpoint, on_runtime};
use crate::rows::{Format, Rows};
use crate::shell::pointed_at;
use crate::style::Style;
use crate::transfer::of_page;

/// Bytes of a query that is read from standard input; the service takes fewer.
const QUERY_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Args)]
pub struct Query {
    #[command(flatten)]
    endpoint: Endpoint,
    /// The container to ask.
    #[arg(value_name = "DATABASE/CONTAINER")]
    container: ContainerName,
    /// The query; `-` reads it from standard input.
    #[arg(value_name = "SQL", default_value = "SELECT * FROM c")]
    sql: String,
    #[command(flatten)]
    manner: Manner,
}

#[derive(Args, Clone, Default)]
pub struct Manner {
    /// A parameter of the query, such as `@total=40` or `@name=ada`: JSON, or else a text. May be given several times.
    #[arg(long = "parameter", short = 'p', value_name = "@NAME=VALUE", value_parser = parameter)]
    pub parameters: Vec<(String, Value)>,
    /// Ask one logical partition: its key as JSON, `"ada"` or `["ada",7]`, or as a plain text.
    #[arg(long, value_name = "KEY")]
    pub partition_key: Option<String>,
    /// Rows at most.
    #[arg(long, value_name = "N")]
    pub max: Option<usize>,
    /// How rows are printed; by default `pretty` on a terminal and `lines` elsewhere.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

/// What an answer came to.
pub struct Outcome {
    pub rows: usize,
    pub charge: f64,
    /// There are more rows than were asked for.
    pub is_cut: bool,
}

pub fn run(query: Query) -> anyhow::Result<()> {
    let sql = match query.sql.as_str() {
        "-" => from_stdin()?,
        sql => sql.to_owned(),
    };
    let mut account = Account::new(query.endpoint);
    let mut out = std::io::stdout().lock();
    let stream = std::io::stdout();
    let format = if stream.is_terminal() { Format::Pretty } else { Format::Lines };
    let mut rows = Rows::new(&mut out, query.manner.format.unwrap_or(format), &stream);
    let asked = ask(&mut account, &query.container, &sql, &query.manner, &mut rows);
    let outcome = on_runtime(asked);
    // The reader of our output may have seen enough and be gone.
    let _ = rows.finish();
    let style = Style::of(&std::io::stderr());
    let outcome = outcome.map_err(|error| pointed_at(&sql, error, style))?;
    eprintln!("{}", style.faint(&outcome.line()));
    Ok(())
}

impl Outcome {
    pub fn line(&self) -> String {
        let rows = if self.rows == 1 { "row" } else { "rows" };
        format!("{} {rows}, {:.2} RU", self.rows, self.charge)
    }
}

fn from_stdin() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(QUERY_BYTES_MAX).read_to_string(&mut text).context("cannot read the query")?;
    Ok(text)
}

/// Asks page after page, and prints each as it comes.
pub async fn ask(
    account: &mut Account,
    container: &ContainerName,
    sql: &str,
    manner: &Manner,
    out: &mut Rows<'_, impl Write>,
) -> anyhow::Result<Outcome> {
    let parameters: Vec<Value> =
        manner.parameters.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let query = json!({"query": sql, "parameters": parameters});
    let mut headers = Headers::new();
    headers
        .extend(manner.partition_key.as_deref().map(|key| ("x-ms-documentdb-partitionkey", key_header(key))));
    let most = manner.max.unwrap_or(usize::MAX);
    let mut outcome = Outcome { rows: 0, charge: 0.0, is_cut: false };
    let mut continuation = None;
    loop {
        let page = account.query(container, &query, &headers, continuation.as_deref()).await?;
        outcome.charge += page.charge;
        let rows = of_page(&page.reply.body).context("the server sent a page that is not one")?;
        let shown = rows.len().min(most - outcome.rows);
        let written = out.page(&rows[..shown]);
        outcome.rows += shown;
        continuation = page.continuation;
        outcome.is_cut = shown < rows.len() || (outcome.rows >= most && continuation.is_some());
        if written.is_err() || continuation.is_none() || outcome.rows >= most {
            return Ok(outcome);
        }
    }
}

pub fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("name it as @NAME=VALUE")?;
    if !name.starts_with('@') || name.len() < 2 {
        return Err("the name of a parameter begins with @".to_owned());
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}

/// The header wants an array.
fn key_header(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(parts)) => Value::Array(parts).to_string(),
        Ok(value) if !value.is_object() => json!([value]).to_string(),
        _ => json!([text]).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_json_or_text() {
        assert_eq!(parameter("@a=40"), Ok(("@a".into(), json!(40))));
        assert_eq!(parameter("@a=\"40\""), Ok(("@a".into(), json!("40"))));
        assert_eq!(parameter("@a=x=y"), Ok(("@a".into(), json!("x=y"))));
        for wrong in ["a=1", "@=1", "@a"] {
            assert!(parameter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_partition_key_may_be_a_plain_text() {
        for (text, header) in [
            ("ada", "[\"ada\"]"),
            ("\"7\"", "[\"7\"]"),
            ("7", "[7]"),
            ("[\"a\",1]", "[\"a\",1]"),
            ("{}", "[\"{}\"]"),
        ] {
            assert_eq!(key_header(text), header);
        }
    }
}
