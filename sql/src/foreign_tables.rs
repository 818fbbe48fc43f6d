//! Tables and views of a source in other engines' SQL: those that a query names, and those that they require.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lake_store::tables::SESSIONS;
use lake_store::{Kind, Table};

use crate::questions::views;

/// The SQL dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    DuckDb,
    Spark,
    Trino,
}

/// A table, and its files.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) table: &'static Table,
    pub(crate) files: Vec<PathBuf>,
    /// Whether all their rows are valid; otherwise only those that their session names.
    pub(crate) all_count: bool,
}

/// Names in a query, and in the views that it names.
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
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

/// The tables that a query needs; sessions come first, because others are joined with them.
pub(crate) fn needed<'t>(tables: &'t [Named], query: &str) -> impl Iterator<Item = &'t Named> {
    let names = names_in(query);
    let is_needed =
        move |entry: &&Named| *entry.table == SESSIONS || names.contains(entry.table.name);
    tables.iter().filter(is_needed)
}

/// Statements that create the views in a query.
pub(crate) fn views_in(dialect: Dialect, query: &str) -> Vec<String> {
    let names = names_in(query);
    let named = views().filter(|(name, ..)| names.contains(*name));
    named.map(|(.., statement)| statement.replacen("CREATE VIEW", begin(dialect), 1)).collect()
}

const fn begin(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::DuckDb => "CREATE VIEW",
        // Persistent views can't use temporary ones.
        Dialect::Spark => "CREATE OR REPLACE TEMPORARY VIEW",
        // Trino has no temporary views.
        Dialect::Trino => "CREATE OR REPLACE VIEW",
    }
}

/// A table as a view of its valid rows; without `rows` it is empty.
pub(crate) fn view_of(
    dialect: Dialect,
    table: &Table,
    rows: Option<&str>,
    all_count: bool,
) -> String {
    let (begin, name) = (begin(dialect), table.name);
    let Some(rows) = rows else {
        return format!("{begin} {name} AS SELECT {} WHERE 1 = 0", nulls(dialect, table));
    };
    let columns: Vec<String> =
        table.columns.iter().map(|column| format!("x.{}", column.name)).collect();
    let columns = columns.join(", ");
    let is_of = "s.session_id = x.session_id AND s.ingest_id = x.ingest_id";
    let counted = match (all_count, dialect) {
        (true, _) => String::new(),
        // Trino would number all rows of x to find those with a match in s.
        (false, Dialect::Trino) => {
            format!(" JOIN (SELECT DISTINCT session_id, ingest_id FROM sessions) s ON {is_of}")
        }
        (false, _) => format!(" WHERE EXISTS (SELECT 1 FROM sessions s WHERE {is_of})"),
    };
    format!("{begin} {name} AS SELECT {columns} FROM {rows} x{counted}")
}

/// A column type.
pub(crate) const fn kind_of(dialect: Dialect, kind: Kind) -> &'static str {
    match (kind, dialect) {
        (Kind::Long, _) => "BIGINT",
        (Kind::Int, _) => "INT",
        (Kind::Double, _) => "DOUBLE",
        (Kind::Bool, _) => "BOOLEAN",
        (Kind::Text, Dialect::Spark) => "STRING",
        (Kind::Text, Dialect::DuckDb | Dialect::Trino) => "VARCHAR",
    }
}

/// A table without rows.
fn nulls(dialect: Dialect, table: &Table) -> String {
    let column = |column: &lake_store::Column| {
        format!("CAST(NULL AS {}) AS {}", kind_of(dialect, column.kind), column.name)
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
            ["exit_percentiles", "exit_hist", "buckets"].iter().all(|name| names.contains(*name))
        );
        assert!(!names.contains("state_rollup"), "{names:?}");
    }
}
