//! Stored procedures.

use std::sync::Arc;

use orrery_doc::PartitionKey;
use orrery_script::{Limits, Program, call_procedure};

use super::host::ScriptHost;
use super::run::{Ended, Job, Place, Produced};
use super::{ScriptOptions, ScriptReply};
use crate::catalog::{Child, Container};
use crate::db::Db;
use crate::error::{ErrorKind, Result};

impl Db {
    /// Runs a procedure on one logical partition. `arguments` is JSON, or empty.
    pub async fn execute(
        &self,
        container: &Arc<Container>,
        procedure: &Child,
        key: &PartitionKey,
        arguments: Vec<u8>,
        options: &ScriptOptions,
    ) -> Result<ScriptReply> {
        let program = self.inner.scripts.program(procedure).map_err(ErrorKind::Script)?;
        let job = Arc::new(Procedure { program, arguments });
        let done = self.transact(Place::of(container, key), job, options).await?;
        Ok(ScriptReply { body: done.produced.body, log: done.log, receipt: done.receipt })
    }
}

struct Procedure {
    program: Arc<Program>,
    arguments: Vec<u8>,
}

impl Job for Procedure {
    fn run(&self, host: ScriptHost, limits: &Limits, logging: bool) -> Ended {
        let finished = call_procedure(&self.program, &self.arguments, logging, host, limits);
        let result = match finished.result {
            Ok(output) => Ok(Produced { body: output.body, outcome: None }),
            Err(error) => Err(ErrorKind::Script(error)),
        };
        Ended { host: finished.host, log: finished.log, result }
    }
}
