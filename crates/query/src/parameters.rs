//! The parameters of a query: `[{"name": "@x", "value": ...}]`.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_doc::Value;

use crate::error::{QueryError, Result};
use crate::value::Val;

#[derive(Debug, Default, Clone)]
pub struct Parameters {
    /// Shared with the programs that they were given to.
    values: Arc<HashMap<String, Val<'static>>>,
}

impl Parameters {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter; the name has its `@`.
    pub fn set(&mut self, name: &str, value: Value<'_>) {
        Arc::make_mut(&mut self.values).insert(name.to_owned(), Val::from(value).to_owned_val());
    }

    /// Reads the `parameters` of a query body. A missing value is undefined; anything that is not a
    /// list of named values is refused.
    pub fn from_value(list: Value<'_>) -> Result<Self> {
        let mut parameters = Self::default();
        match list {
            Value::Undefined | Value::Null => {}
            Value::Array(items) => {
                for item in items.iter() {
                    let name = item.get("name").as_str().filter(|name| name.starts_with('@'));
                    let name = name.ok_or_else(Self::refusal)?;
                    parameters.set(name, item.get("value"));
                }
            }
            _ => return Err(Self::refusal()),
        }
        Ok(parameters)
    }

    /// About how long their text was: a value takes many times that in memory.
    pub(crate) fn text_bytes(&self) -> usize {
        let bytes: u64 = self.values.values().map(|value| value.made_bytes(u64::MAX)).sum();
        usize::try_from(bytes / 16).unwrap_or(usize::MAX)
    }

    fn refusal() -> QueryError {
        QueryError::bare("The query parameters must be a list of objects with a name and a value.")
    }

    pub(crate) fn get(&self, name: &str) -> Val<'static> {
        self.values.get(name).cloned().unwrap_or(Val::Undefined)
    }
}
