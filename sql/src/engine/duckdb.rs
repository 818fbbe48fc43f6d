//! DuckDB, through its program or its Python module.

use std::fs;
use std::path::Path;
use std::process::Command;

use datafusion::error::{DataFusionError, Result};
use serde_json::{Deserializer, Value};

use super::{Asked, at_place, failed, literal};
use crate::foreign_tables::{Dialect, Named, needed, view_of, views_in};
use crate::running::Running;
use crate::stored_lake::StoredLake;

/// Runs the given statements, and prints rows of the last as JSON objects.
const SCRIPT: &str = r#"
import duckdb, json, sys
found = None
for statement in json.load(sys.stdin):
    try:
        found = duckdb.execute(statement)
    except duckdb.Error as error:
        sys.exit(str(error))
names = [one[0] for one in found.description]
print(json.dumps([dict(zip(names, row)) for row in found.fetchall()]))
"#;

/// The query starts on a new line, so that line numbers in errors refer to it.
const ANSWER: &str = "CREATE VIEW hyperscope_answer AS\n";

/// Writes the result into a folder.
///
/// # Errors
/// When DuckDB can't be run, or reports an error.
pub(super) async fn ask(program: &Path, request: &Asked<'_>, folder: &Path) -> Result<()> {
    let answer = folder.join("answer");
    fs::create_dir(&answer)?;
    let path = |name: &str| literal(&folder.join(name).display().to_string());
    let mut statements = vec![
        format!("SET memory_limit = '{} MiB'", request.memory_mib),
        format!("SET temp_directory = {}", path("spilled")),
    ];
    let listed = match request.store {
        Some(lake) => Some(listed(program, request, lake).await?),
        None => None,
    };
    let tables = listed.as_deref().unwrap_or(request.tables);
    statements.extend(needed(tables, request.query).map(view));
    statements.extend(views_in(Dialect::DuckDb, request.query));
    statements.push(format!("{ANSWER}{}", request.query));
    let columns = "SELECT column_name, data_type FROM duckdb_columns() \
                   WHERE table_name = 'hyperscope_answer' ORDER BY column_index";
    let described = [&statements[..], &[columns.to_owned()]].concat();
    let described = run(program, &described, request.query).await?;
    let selected: Vec<String> = described.iter().map(selected).collect();
    let (selected, to) = (selected.join(", "), path("answer/answer.parquet"));
    statements
        .push(format!("COPY (SELECT {selected} FROM hyperscope_answer) TO {to} (FORMAT parquet)"));
    run(program, &statements, request.query).await.map(drop)
}

/// The tables of a lake in an object store that a query needs, with the files that DuckDB lists.
async fn listed(program: &Path, request: &Asked<'_>, lake: &StoredLake) -> Result<Vec<Named>> {
    let found = needed(request.tables, request.query)
        .map(|named| format!("SELECT file FROM glob({})", literal(&lake.pattern(named.table))));
    let statement = found.collect::<Vec<_>>().join(" UNION ALL ");
    let rows = run(program, &[statement], "").await.map_err(|error| no_store(error, lake))?;
    let file = |row: &Value| row.get("file").and_then(Value::as_str).map(str::to_owned);
    lake.tables(&rows.iter().filter_map(file).collect::<Vec<_>>()).map_err(failed)
}

/// Explains why a store can't be read, and what the user can do.
fn no_store(error: DataFusionError, lake: &StoredLake) -> DataFusionError {
    let message = error.find_root().to_string();
    let why = message.strip_prefix("External error: ").unwrap_or(&message);
    let hint = if why.contains("extension 'httpfs'") || why.contains("extension \"httpfs\"") {
        "DuckDB reads s3:// by its extension httpfs, which it has to fetch once (INSTALL httpfs), or to be given as a file"
    } else {
        "DuckDB takes keys and endpoints of its own secrets (CREATE PERSISTENT SECRET), or of AWS_… in the environment"
    };
    failed(format!("{}: {hint}\n{why}", lake.as_str()))
}

/// A table as a view of its files.
fn view(Named { table, files, all_count }: &Named) -> String {
    let list: Vec<String> = files.iter().map(|path| literal(&path.display().to_string())).collect();
    // Days are part of folder names, and not columns of any table.
    let options = "union_by_name = true, hive_partitioning = false";
    let rows = format!("read_parquet([{}], {options})", list.join(", "));
    let rows = (!list.is_empty()).then_some(&*rows);
    view_of(Dialect::DuckDb, table, rows, *all_count)
}

/// A column of the result, cast to a type that Parquet has.
fn selected(column: &Value) -> String {
    let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = format!("\"{}\"", text("column_name").replace('"', "\"\""));
    match text("data_type").as_str() {
        // Sums of BIGINT, which Parquet would store as floating-point numbers.
        "HUGEINT" => format!("CAST({name} AS BIGINT) AS {name}"),
        _ => name,
    }
}

/// The rows of the last statement.
async fn run(program: &Path, statements: &[String], query: &str) -> Result<Vec<Value>> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let mut command = Command::new(program);
    let input = if name.starts_with("python") {
        command.args(["-c", SCRIPT]);
        Value::from(statements.to_vec()).to_string()
    } else {
        // A user's settings could change the form of the output.
        command.args(["-init", "/dev/null", "-batch", "-bail", "-json"]);
        // Statements may end with a comment.
        statements.iter().map(|statement| format!("{statement}\n;\n")).collect()
    };
    let ended = Running::start(command, &input)?.end().await?;
    if !ended.succeeded {
        return Err(explain(&ended.messages, query));
    }
    // Some versions also print rows of earlier statements.
    let mut found = Deserializer::from_str(&ended.output).into_iter::<Vec<Value>>();
    let last = found.try_fold(Vec::new(), |_, rows| rows);
    last.map_err(|error| failed(format!("{name} does not print rows as DuckDB does: {error}")))
}

/// DuckDB's error, with its position in the query.
fn explain(messages: &str, query: &str) -> DataFusionError {
    // Errors about missing extensions begin differently from all others.
    let begins = |line: &str| line.contains("Error") || line.starts_with("An error occurred");
    let mut lines = messages.lines().skip_while(|line| !begins(line)).peekable();
    if lines.peek().is_none() {
        let last = messages.lines().map(str::trim).rfind(|line| !line.is_empty());
        return failed(last.unwrap_or("DuckDB failed and did not say why").to_owned());
    }
    let mut words = Vec::new();
    let mut place = None;
    while let Some(line) = lines.next() {
        if line.starts_with("LINE ") {
            place = lines.next().and_then(|marks| place_in(line, marks, query));
        } else {
            words.push(line.trim());
        }
    }
    words.retain(|line| !line.is_empty());
    at_place(&words.join("; "), query, place)
}

/// The position in an error: `LINE 2: SELECT reson`, with marks on the line below.
fn place_in(line: &str, marks: &str, query: &str) -> Option<(u64, u64)> {
    let (number, shown) = line.strip_prefix("LINE ")?.split_once(": ")?;
    // The first line of the statement is not part of the query.
    let number = number.parse::<usize>().ok()?.checked_sub(1)?;
    let column = marks.find('^')?.checked_sub(line.len() - shown.len())?;
    let before = match shown.strip_prefix("...") {
        // An excerpt of a long line.
        Some(part) => {
            let full_line = query.lines().nth(number.checked_sub(1)?)?;
            let (before, _) = full_line.split_once(part.trim_end_matches("..."))?;
            (before.chars().count() + column).checked_sub("...".len())?
        }
        None => column,
    };
    Some((number as u64, before as u64 + 1))
}

#[cfg(test)]
mod tests {
    use lake_store::tables::SESSIONS;

    use super::*;

    #[test]
    fn a_table_is_what_its_files_have() {
        let files = vec!["a'b.parquet".into(), "c.parquet".into()];
        let made = view(&Named { table: &SESSIONS, files, all_count: true });
        assert!(made.contains("read_parquet(['a''b.parquet', 'c.parquet'], "), "{made}");
        let made = view(&Named { table: &SESSIONS, files: Vec::new(), all_count: true });
        assert!(made.contains("CAST(NULL AS INT) AS cpus") && !made.contains("parquet"), "{made}");
    }

    #[test]
    fn an_error_is_marked_in_the_query() {
        let query = "SELECT reson\nFROM exits";
        let messages = "Binder Error: Referenced column \"reson\" not found in FROM clause!\n\
                    Candidate bindings: \"reason\"\n\nLINE 2: SELECT reson\n               ^^^^^";
        let shown = explain(messages, query).find_root().to_string();
        assert!(
            shown.ends_with("clause!; Candidate bindings: \"reason\"\n  SELECT reson\n         ^"),
            "{shown}"
        );
        let messages = "An error occurred while trying to automatically install the required extension 'httpfs':\nNo.\n\n\
                    LINE 1: SELECT file FROM glob('s3://b')\n                         ^";
        let shown = explain(messages, "").find_root().to_string();
        assert!(shown.ends_with("the required extension 'httpfs':; No."), "{shown}");
        let shown = explain("sh: no", query).find_root().to_string();
        assert!(shown.ends_with("sh: no"), "{shown}");
    }

    #[test]
    fn a_place_in_a_part_of_a_line_is_one_of_the_line() {
        let query = format!("SELECT {}reson", "reason, ".repeat(20));
        let messages = "Binder Error: x\n\nLINE 2: ...reason, reson\n                   ^";
        let shown = explain(messages, &query).find_root().to_string();
        let marks = shown.lines().last().map(|line| line.find('^'));
        assert_eq!(marks, Some(query.find("reson").map(|at| at + 2)), "{shown}");
    }
}
