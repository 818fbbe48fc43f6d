//! Spark, through the `spark-sql` of `SPARK_HOME` or of the `PATH`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::error::{DataFusionError, Result};
use lake_store::Column;
use lake_store::tables::SESSIONS;

use super::{Asked, at_place, failed};
use crate::foreign_tables::{Dialect, Named, kind_of, needed, view_of, views_in};
use crate::running::Running;
use crate::stored_lake::StoredLake;

/// Writes the result into a folder, which Spark's executors must see as well.
///
/// # Errors
/// When Spark can't be run, or reports an error.
pub(super) async fn ask(master: &str, request: &Asked<'_>, folder: &Path) -> Result<()> {
    let tables = needed(request.tables, request.query);
    let mut statements: Vec<String> =
        tables.flat_map(|named| views(named, request.store)).collect();
    statements.extend(views_in(Dialect::Spark, request.query));
    let to = text(&format!("file:{}", folder.join("answer").display()));
    // Spark names its files in the order of the rows. The query starts on a new line, so that errors name its
    // lines.
    statements.push(format!("INSERT OVERWRITE DIRECTORY {to} USING parquet\n{}", request.query));
    let script = folder.join("statements.sql");
    // Statements may end with a comment.
    fs::write(
        &script,
        statements.iter().map(|statement| format!("{statement}\n;\n")).collect::<String>(),
    )?;
    let mut command = Command::new(program()?);
    command.args(["--master", master, "--conf", "spark.ui.enabled=false"]);
    command.arg("--conf").arg(format!("spark.sql.warehouse.dir={}", folder.join("w").display()));
    // Reads only files, without a metastore. Logs only errors: a pattern that is no file gives a warning with a stack
    // trace.
    command.args(["--conf", "spark.sql.catalogImplementation=in-memory"]);
    command.args(["--conf", "spark.log.level=ERROR"]);
    command.arg("-f").arg(&script).current_dir(folder);
    let ended = Running::start(command, "")?.end().await?;
    if ended.succeeded { Ok(()) } else { Err(explain(&ended.messages, request.query)) }
}

fn program() -> Result<PathBuf> {
    match std::env::var_os("SPARK_HOME") {
        Some(home) => Ok(std::path::absolute(home)?.join("bin/spark-sql")),
        None => Ok("spark-sql".into()),
    }
}

/// A table as views: of its files with all current columns, and of their valid rows.
fn views(Named { table, files, all_count }: &Named, store: Option<&StoredLake>) -> Vec<String> {
    let view = |rows| view_of(Dialect::Spark, table, rows, *all_count);
    if store.is_none() && files.is_empty() {
        return vec![view(None)];
    }
    let name = format!("{}_files", table.name);
    let column =
        |column: &Column| format!("{} {}", column.name, kind_of(Dialect::Spark, column.kind));
    let columns = table.columns.iter().map(column).collect::<Vec<_>>().join(", ");
    let of_pattern = |path: &str| {
        let path = text(path);
        format!(
            "CREATE OR REPLACE TEMPORARY VIEW {name} ({columns}) USING parquet OPTIONS (path {path})"
        )
    };
    let of_files = match store {
        None => of_pattern(&format!("file:{}", pattern(files))),
        // A pattern of sessions without any match is an error: then there is no lake.
        Some(lake) if **table == SESSIONS => of_pattern(&in_hadoop(&lake.pattern(table))),
        // A missing folder is a table without rows.
        Some(lake) => format!(
            "CREATE TABLE {name} ({columns}) USING parquet \
             OPTIONS (recursiveFileLookup 'true', pathGlobFilter '*.parquet') LOCATION {}",
            text(&in_hadoop(&lake.root(table)))
        ),
    };
    vec![of_files, view(Some(&name))]
}

/// A place in a store, under its name in Hadoop.
fn in_hadoop(place: &str) -> String {
    place.replacen("s3://", "s3a://", 1)
}

/// A string literal: some versions don't take two quotes as an escaped one, and no version takes a backslash
/// literally.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Files as one pattern: `FOLDER/{A,B}`. One relation per file would make the plan as long as the lake has
/// files.
fn pattern(files: &[PathBuf]) -> String {
    let text = |path: &Path| {
        let mut text = String::new();
        for c in path.display().to_string().chars() {
            if "{}[]*?,\\".contains(c) {
                text.push('\\');
            }
            text.push(c);
        }
        text
    };
    let Some((first, others)) = files.split_first() else { return String::new() };
    if others.is_empty() {
        return text(first);
    }
    let is_common = |folder: &&Path| others.iter().all(|path| path.starts_with(folder));
    let common = first.ancestors().skip(1).find(is_common).unwrap_or(Path::new("/"));
    let below = files.iter().map(|path| text(path.strip_prefix(common).unwrap_or(path)));
    format!("{}/{{{}}}", text(common), below.collect::<Vec<_>>().join(","))
}

/// Spark's error, with its position in the query.
fn explain(messages: &str, query: &str) -> DataFusionError {
    let is_class = |line: &&str| line.starts_with('[') && line.contains(']');
    let is_error = |line: &&str| line.contains("Error") || line.contains("Exception");
    let lines = || messages.lines().map(str::trim).filter(|line| !line.is_empty());
    // After this message, Spark runs no further statements.
    let killed = lines().find_map(|line| line.split_once("Application has been killed. Reason: "));
    if let Some((_, why)) = killed {
        return failed(format!("Spark: {why} Is its master there, with workers that are free?"));
    }
    if lines().any(|line| {
        line.contains("S3AFileSystem not found")
            || line.contains("No FileSystem for scheme \"s3a\"")
    }) {
        return failed(
            "Spark has no hadoop-aws, by which it reads s3://: name it in spark.jars.packages of spark-defaults.conf \
             (org.apache.hadoop:hadoop-aws of Spark's Hadoop), and keys and endpoint in spark.hadoop.fs.s3a.…"
                .to_owned(),
        );
    }
    let found =
        lines().find(is_class).or_else(|| lines().find(is_error)).or_else(|| lines().next_back());
    let Some(why) = found else { return failed("Spark failed and did not say why".to_owned()) };
    let place = place_in(why).or_else(|| messages.lines().find_map(place_in));
    // Line numbers are those of the statement, whose first line is not part of the query; columns count from
    // 0.
    let place = place.and_then(|(line, column)| Some((line.checked_sub(1)?, column + 1)));
    at_place(why.split("; line ").next().unwrap_or(why), query, place)
}

/// The position in an error: `line 2 pos 7`, or `(line 2, pos 7)`.
fn place_in(text: &str) -> Option<(u64, u64)> {
    let (_, place) = text.rsplit_once("line ")?;
    let (line, column) = place.split_once(", pos ").or_else(|| place.split_once(" pos "))?;
    let digits = column.find(|c: char| !c.is_ascii_digit()).unwrap_or(column.len());
    Some((line.parse().ok()?, column.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_marked_in_the_query() {
        let messages = "WARN x: an Exception\n\
                    [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `reson` cannot be resolved. \
                    SQLSTATE: 42703; line 2 pos 7;\n'InsertIntoDir";
        let shown = explain(messages, "SELECT reson FROM exits").find_root().to_string();
        assert!(
            shown.ends_with("SQLSTATE: 42703\n  SELECT reson FROM exits\n         ^"),
            "{shown}"
        );
        let messages = "26/11/26 14:41:00 ERROR StandaloneSchedulerBackend: Application has been killed. \
                    Reason: All masters are unresponsive! Giving up.\n\
                    Exception in thread \"main\" java.lang.IllegalStateException: Cannot call methods";
        let shown = explain(messages, "SELECT 1").find_root().to_string();
        assert!(shown.contains("Spark: All masters are unresponsive! Giving up. Is"), "{shown}");
        assert_eq!(place_in("== SQL (line 1, pos 4) =="), Some((1, 4)));
        assert_eq!(place_in("online"), None);
    }

    #[test]
    fn files_are_one_pattern() {
        let pattern =
            |files: &[&str]| pattern(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(pattern(&["/a/b,c/x.parquet"]), "/a/b\\,c/x.parquet");
        assert_eq!(pattern(&["/a/d=1/x", "/a/d=2/y", "/a/d=2/z"]), "/a/{d=1/x,d=2/y,d=2/z}");
        assert_eq!(pattern(&["/a{/x*", "/a{/y"]), "/a\\{/{x\\*,y}");
    }

    #[test]
    fn a_table_has_its_columns_whatever_its_files_have() {
        let named = Named { table: &SESSIONS, files: vec!["/l/a'{b".into()], all_count: true };
        let made = views(&named, None);
        assert!(
            made[0].starts_with(
                "CREATE OR REPLACE TEMPORARY VIEW sessions_files (session_id STRING, "
            )
        );
        assert!(
            made[0].ends_with(r"USING parquet OPTIONS (path 'file:/l/a\'\\{b')"),
            "{}",
            made[0]
        );
        assert!(made[1].contains("FROM sessions_files x"), "{}", made[1]);
    }
}
