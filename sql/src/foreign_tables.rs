//! Tables and views of a source in the words of other engines: those that a query names, and what these take.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lake::tables::SESSIONS;
use lake::{Kind, Table};

use crate::engine::literal;
use crate::questions::views;

/// Whose SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    DuckDb,
    Spark,
}

/// A table, and its files.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) table: &'static Table,
    pub(crate) files: Vec<PathBuf>,
    /// Whether all of their rows count; else those whose session has them.
    pub(crate) all_count: bool,
}

/// Names in a query and in the views that it names.
pub(crate) fn names_in(query: &str) -> BTreeSet<String> {
    let mut names = words(query);
    loop {
        let before = names.len();
        for (view, _, statement) in views() {
            if names.contains(view) {
                names.extend(words(statement));
            }
        }
        if names.len() == before {
            return names;
        }
    }
}

fn words(text: &str) -> BTreeSet<String> {
    let is_part = |one: char| one.is_ascii_alphanumeric() || one == '_';
    let words = text.split(|one| !is_part(one)).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

/// Statements that make the tables and views that a query needs; sessions come first, with which others are joined.
pub(crate) fn views_for(dialect: Dialect, tables: &[Named], query: &str) -> Vec<String> {
    let names = names_in(query);
    let is_needed = |one: &&Named| *one.table == SESSIONS || names.contains(one.table.name);
    let mut statements: Vec<String> =
        tables.iter().filter(is_needed).map(|one| statement(dialect, one)).collect();
    let of_views = views().filter(|(name, ..)| names.contains(*name));
    statements.extend(
        of_views.map(|(.., statement)| statement.replacen("CREATE VIEW", begin(dialect), 1)),
    );
    statements
}

const fn begin(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::DuckDb => "CREATE VIEW",
        // Those that are kept can't be made of those that are not.
        Dialect::Spark => "CREATE OR REPLACE TEMPORARY VIEW",
    }
}

fn statement(dialect: Dialect, Named { table, files, all_count }: &Named) -> String {
    let (begin, name) = (begin(dialect), table.name);
    let columns: Vec<String> =
        table.columns.iter().map(|column| format!("x.{}", column.name)).collect();
    let columns = columns.join(", ");
    if files.is_empty() {
        return format!("{begin} {name} AS SELECT {} WHERE 1 = 0", nulls(dialect, table));
    }
    let counted = match all_count {
        true => "",
        false => {
            " WHERE EXISTS (SELECT 1 FROM sessions s WHERE s.session_id = x.session_id AND s.ingest_id = x.ingest_id)"
        }
    };
    format!("{begin} {name} AS SELECT {columns} FROM {} x{counted}", rows(dialect, files))
}

fn rows(dialect: Dialect, files: &[PathBuf]) -> String {
    match dialect {
        Dialect::DuckDb => {
            let list: Vec<String> =
                files.iter().map(|path| literal(&path.display().to_string())).collect();
            // Days are in folders' names, and columns of no table.
            format!(
                "read_parquet([{}], union_by_name = true, hive_partitioning = false)",
                list.join(", ")
            )
        }
        Dialect::Spark => format!("parquet.`file:{}`", pattern(files).replace('`', "``")),
    }
}

/// Files as one pattern of Spark's: `FOLDER/{A,B}`. A relation for each would be a plan as long as a lake has files.
fn pattern(files: &[PathBuf]) -> String {
    let text = |path: &Path| {
        let mut text = String::new();
        for one in path.display().to_string().chars() {
            if "{}[]*?,\\".contains(one) {
                text.push('\\');
            }
            text.push(one);
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

/// A table without rows.
fn nulls(dialect: Dialect, table: &Table) -> String {
    let column = |column: &lake::Column| {
        let kind = match (column.kind, dialect) {
            (Kind::Long, _) => "BIGINT",
            (Kind::Int, _) => "INT",
            (Kind::Double, _) => "DOUBLE",
            (Kind::Bool, _) => "BOOLEAN",
            (Kind::Text, Dialect::DuckDb) => "VARCHAR",
            (Kind::Text, Dialect::Spark) => "STRING",
        };
        format!("CAST(NULL AS {kind}) AS {}", column.name)
    };
    table.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_takes_its_views_and_their_tables() {
        let names = names_in("SELECT * FROM Exit_Percentiles");
        assert!(
            ["exit_percentiles", "exit_hist", "buckets"].iter().all(|one| names.contains(*one))
        );
        assert!(!names.contains("state_rollup"), "{names:?}");
        let tables =
            [Named { table: &SESSIONS, files: vec!["a'b.parquet".into()], all_count: true }];
        let statements = views_for(Dialect::DuckDb, &tables, "SELECT 1");
        assert_eq!(statements.len(), 1);
        assert!(statements[0].contains("['a''b.parquet']"), "{statements:?}");
    }

    #[test]
    fn files_are_one_pattern_to_spark() {
        let pattern =
            |files: &[&str]| pattern(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(pattern(&["/a/b,c/x.parquet"]), "/a/b\\,c/x.parquet");
        assert_eq!(pattern(&["/a/d=1/x", "/a/d=2/y", "/a/d=2/z"]), "/a/{d=1/x,d=2/y,d=2/z}");
        assert_eq!(pattern(&["/a{/x*", "/a{/y"]), "/a\\{/{x\\*,y}");
    }
}
