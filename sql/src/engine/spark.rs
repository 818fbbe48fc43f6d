//! Spark, by the `spark-sql` of `SPARK_HOME` or of the `PATH`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::error::{DataFusionError, Result};

use super::{Asked, at_place, failed, literal};
use crate::foreign_tables::{Dialect, views_for};
use crate::running::Running;

/// Has the answer written into a folder, which its executors have to see, too.
///
/// # Errors
/// When it can't be run, or says that it can't answer.
pub(super) async fn ask(master: &str, asked: &Asked<'_>, folder: &Path) -> Result<()> {
    let mut statements = views_for(Dialect::Spark, asked.tables, asked.query);
    let to = literal(&format!("file:{}", folder.join("answer").display()));
    // Its files are in the order of the rows, by name. The query begins a line, of which errors speak.
    statements.push(format!("INSERT OVERWRITE DIRECTORY {to} USING parquet\n{}", asked.query));
    let script = folder.join("statements.sql");
    // Statements may end with a comment.
    fs::write(&script, statements.iter().map(|one| format!("{one}\n;\n")).collect::<String>())?;
    let mut command = Command::new(program()?);
    command.args(["--master", master, "--conf", "spark.ui.enabled=false"]);
    command.arg("--conf").arg(format!("spark.sql.warehouse.dir={}", folder.join("w").display()));
    // Files of older converters may lack columns.
    command.args(["--conf", "spark.sql.parquet.mergeSchema=true"]);
    command.arg("-f").arg(&script).current_dir(folder);
    let ended = Running::start(command, "")?.end().await?;
    if ended.succeeded { Ok(()) } else { Err(explain(&ended.messages, asked.query)) }
}

fn program() -> Result<PathBuf> {
    match std::env::var_os("SPARK_HOME") {
        Some(home) => Ok(std::path::absolute(home)?.join("bin/spark-sql")),
        None => Ok("spark-sql".into()),
    }
}

/// What it says is wrong, and its place in the query.
fn explain(said: &str, query: &str) -> DataFusionError {
    let is_class = |line: &&str| line.starts_with('[') && line.contains(']');
    let is_error = |line: &&str| line.contains("Error") || line.contains("Exception");
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let found =
        lines().find(is_class).or_else(|| lines().find(is_error)).or_else(|| lines().last());
    let Some(why) = found else { return failed("Spark failed and did not say why".to_owned()) };
    let place = place_in(why).or_else(|| said.lines().find_map(place_in));
    // Lines are those of its statement, whose first is not the query's; columns count from 0.
    let place = place.and_then(|(line, column)| Some((line.checked_sub(1)?, column + 1)));
    at_place(why.split("; line ").next().unwrap_or(why), query, place)
}

/// The place that it names: `line 2 pos 7`, or `(line 2, pos 7)`.
fn place_in(text: &str) -> Option<(u64, u64)> {
    let (_, place) = text.rsplit_once("line ")?;
    let (line, column) = place.split_once(", pos ").or_else(|| place.split_once(" pos "))?;
    let digits = column.find(|one: char| !one.is_ascii_digit()).unwrap_or(column.len());
    Some((line.parse().ok()?, column.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_marked_in_the_query() {
        let said = "WARN x: an Exception\n\
                    [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `reson` cannot be resolved. \
                    SQLSTATE: 42703; line 2 pos 7;\n'InsertIntoDir";
        let shown = explain(said, "SELECT reson FROM exits").find_root().to_string();
        assert!(
            shown.ends_with("SQLSTATE: 42703\n  SELECT reson FROM exits\n         ^"),
            "{shown}"
        );
        assert_eq!(place_in("== SQL (line 1, pos 4) =="), Some((1, 4)));
        assert_eq!(place_in("online"), None);
    }
}
