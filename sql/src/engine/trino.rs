//! Trino, through its HTTP protocol: tables of its Hive connector refer to the files of a lake, and the query runs on
//! them unchanged.

mod answer;
mod catalog;
mod client;
mod connection;
mod credentials;
mod tables;

use std::path::Path;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};

pub(crate) use catalog::Catalog;

use self::answer::Writer;
use self::client::{Client, Refusal};
use super::{Asked, at_place, failed};

/// Writes the result into a folder.
///
/// # Errors
/// When Trino can't be reached, or reports an error.
pub(super) async fn ask(catalog: &Catalog, request: &Asked<'_>, folder: &Path) -> Result<()> {
    let tables = tables::Tables::prepare(catalog, request, folder)?;
    let client = Arc::new(Client::new(catalog, tables.schema()).map_err(failed)?);
    // Dropping this future stops the query.
    let stopped = Stop(Arc::clone(&client));
    let (query, answer) = (request.query.to_owned(), folder.join("answer"));
    let work = move || {
        for statement in tables.statements() {
            client.run(statement, &mut |_, _| Ok(())).map_err(|why| why.in_words())?;
        }
        let answered = answer_to(&client, &query, &answer);
        // Drops the tables of a single query; the query's result is known before.
        let dropped = tables.dropped().map(|statement| client.run(statement, &mut |_, _| Ok(())));
        answered?;
        dropped.transpose().map_err(|why| why.in_words()).map(drop)
    };
    let done = tokio::task::spawn_blocking(work).await;
    drop(stopped);
    done.map_err(|error| DataFusionError::External(error.into()))?
}

fn answer_to(client: &Client, query: &str, folder: &Path) -> Result<()> {
    std::fs::create_dir(folder)?;
    let mut writer = Writer::new(folder.join("answer.parquet"));
    let done = client.run(query, &mut |columns, rows| writer.write(columns, rows));
    done.map_err(|refusal| match refusal {
        Refusal::Said { why, place } => {
            // Trino's message repeats the position.
            let words = why.split_once(": ").filter(|(before, _)| before.starts_with("line "));
            at_place(words.map_or(why.as_str(), |(_, words)| words), query, place)
        }
        other => other.in_words(),
    })?;
    writer.end()
}

impl Refusal {
    fn in_words(self) -> DataFusionError {
        match self {
            Self::Said { why, .. } => failed(format!("Trino: {why}")),
            Self::Failed(why) => failed(why),
            Self::Here(error) => error,
        }
    }
}

/// Cancels the running query when dropped.
struct Stop(Arc<Client>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
