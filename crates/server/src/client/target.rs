//! Databases and containers as the command line names them.

use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};

/// `DATABASE/CONTAINER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerName {
    pub database: String,
    pub container: String,
}

/// `DATABASE` or `DATABASE/CONTAINER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub database: String,
    pub container: Option<String>,
}

impl ContainerName {
    pub fn json(&self) -> Value {
        json!({"database": self.database, "container": self.container})
    }

    /// What is signed and, encoded, dialled.
    pub fn link(&self) -> String {
        format!("dbs/{}/colls/{}", self.database, self.container)
    }
}

impl Target {
    pub fn link(&self) -> String {
        match &self.container {
            Some(container) => format!("dbs/{}/colls/{container}", self.database),
            None => format!("dbs/{}", self.database),
        }
    }
}

impl FromStr for ContainerName {
    type Err = String;

    fn from_str(text: &str) -> Result<ContainerName, String> {
        match text.parse()? {
            Target { database, container: Some(container) } => Ok(ContainerName { database, container }),
            Target { .. } => Err("name it as DATABASE/CONTAINER".to_owned()),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        let (database, container) = match text.split_once('/') {
            Some((database, container)) => (database, Some(container)),
            None => (text, None),
        };
        if database.is_empty() || container.is_some_and(|name| name.is_empty() || name.contains('/')) {
            return Err("name it as DATABASE/CONTAINER".to_owned());
        }
        Ok(Target { database: database.to_owned(), container: container.map(str::to_owned) })
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.database, self.container)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.container {
            Some(container) => write!(out, "{}/{container}", self.database),
            None => out.write_str(&self.database),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_slash_at_most() {
        let target = |text: &str| text.parse::<Target>().map(|target| target.link());
        assert_eq!(target("shop"), Ok("dbs/shop".into()));
        assert_eq!(target("shop/orders"), Ok("dbs/shop/colls/orders".into()));
        for wrong in ["", "/", "shop/", "/orders", "a/b/c"] {
            assert!(target(wrong).is_err(), "{wrong}");
            assert!(wrong.parse::<ContainerName>().is_err(), "{wrong}");
        }
        assert!("shop".parse::<ContainerName>().is_err());
        assert_eq!("a/b".parse::<ContainerName>().map(|name| name.to_string()), Ok("a/b".into()));
    }
}
