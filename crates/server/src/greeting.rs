//! What the server says on standard output once it is ready: a screen for people, or one line for programs.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::time::Instant;

use crate::config::{Config, Durability};
use crate::endpoints::{Endpoint, KEY_PLACEHOLDER};
use crate::keys::AccountKeys;
use crate::proxies::PublicUrl;
use crate::style::Style;

pub struct Greeting<'s> {
    pub config: &'s Config,
    pub keys: &'s AccountKeys,
    /// Where the NoSQL API is.
    pub address: SocketAddr,
    pub endpoints: Vec<Endpoint>,
}

impl Greeting<'_> {
    pub fn announce(&self, started: Instant) {
        let mut stdout = std::io::stdout().lock();
        let is_for_people = stdout.is_terminal() && !self.config.ready_line;
        let text = if is_for_people { self.screen(Style::of(&stdout)) } else { self.line() };
        // A caller that has closed our standard output does not want the text.
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        drop(stdout);
        if self.config.durability == Durability::Relaxed {
            tracing::warn!("durability is relaxed: writes are acknowledged before they are on disk");
        }
        if is_for_people {
            return;
        }
        for endpoint in &self.endpoints {
            let connection = self.connection_string(endpoint, KEY_PLACEHOLDER);
            tracing::info!("{} connection string: {connection}", endpoint.api);
        }
        let (address, key, data) = (self.address, self.key_source(), self.data());
        tracing::info!(%address, key, data, ready_after_ms = started.elapsed().as_millis() as u64, "ready");
    }

    /// The line that programs rely on.
    fn line(&self) -> String {
        let (address, port) = (self.address, self.address.port());
        let (key, data) = (self.key_source(), self.data());
        let (http, https) = self.of("nosql").map_or(("", ""), |nosql| (&*nosql.http, &*nosql.https));
        let table = self.of("table").map_or("none", |table| &*table.http);
        format!(
            "ORRERY READY nosql={address} port={port} endpoint={http} secure={https} \
             table={table} key={key} data={data}\n"
        )
    }

    fn screen(&self, style: Style) -> String {
        let connection = |api: &str| self.of(api).map(|of| self.connection_string(of, "<primary>"));
        let own = self.of("nosql").map_or(("", ""), |nosql| (&*nosql.http, &*nosql.https));
        let public = self.config.public_url.as_ref().map(PublicUrl::root);
        let root = public.as_deref().unwrap_or(own.0);
        let mut rows = vec![
            ("Explorer", style.link(&format!("{root}_explorer"))),
            ("Connection string", connection("nosql").unwrap_or_default().replace(own.0, root)),
            ("Tables", connection("table").unwrap_or_default()),
            ("HTTPS", format!("{}, signed by {root}_explorer/emulator.pem", own.1)),
            ("Keys", self.keys_in_use()),
            ("Data", self.data()),
        ];
        rows.retain(|(_, value)| !value.is_empty());
        let mut out = format!("\n{}\n\n", style.bold(concat!("Orrery ", env!("CARGO_PKG_VERSION"))));
        for (name, value) in rows {
            out += &format!("  {}  {value}\n", style.faint(&format!("{name:<17}")));
        }
        out += &format!(
            "\nOpen the explorer, or give the connection string to an SDK of Azure Cosmos DB. {} stops the server.\n\n",
            style.bold("Ctrl+C")
        );
        out
    }

    fn of(&self, api: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.api == api)
    }

    /// The well-known key is no secret; another one is not shown.
    fn connection_string(&self, endpoint: &Endpoint, hidden: &str) -> String {
        let key = if self.keys.uses_emulator_key() { self.keys.primary.as_str() } else { hidden };
        endpoint.connection_string.replace(KEY_PLACEHOLDER, key)
    }

    fn key_source(&self) -> &'static str {
        if self.keys.uses_emulator_key() { "emulator" } else { "key-file" }
    }

    fn keys_in_use(&self) -> String {
        match &self.config.key_file {
            Some(file) => format!("those of {}", file.display()),
            None => "the well-known one of emulators".to_owned(),
        }
    }

    fn data(&self) -> String {
        if self.config.in_memory { "memory".to_owned() } else { self.config.data_dir.display().to_string() }
    }
}
