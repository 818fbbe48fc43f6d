//! Compares the schema of the tables in the documentation and in files.

use std::fmt::Write;

use fleet::lake::tables::{REJECTED, TABLES};
use fleet::lake::{Kind, Table};

use super::{TableFile, exported};
use crate::tool::repository;

/// Where the generated part of the page begins.
const BEGIN: &str = "<!-- tables: make bless writes them -->\n";

fn documented(table: &Table) -> String {
    let mut text = format!(
        "## {}\n\n{}.\n\n| Column | Type | Meaning |\n|---|---|---|\n",
        table.name, table.about
    );
    for column in table.columns {
        let kind = match column.kind {
            Kind::Long => "INT64",
            Kind::Int => "INT32",
            Kind::Double => "DOUBLE",
            Kind::Bool => "BOOLEAN",
            Kind::Text => "STRING",
        };
        let null = if column.nullable { " or null" } else { "" };
        writeln!(text, "| `{}` | {kind}{null} | {} |", column.name, column.about).unwrap();
    }
    text
}

#[test]
fn every_table_and_column_is_documented() {
    let page = repository().join("docs/formats/lake.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (head, _) = text.split_once(BEGIN).unwrap();
    let tables: Vec<String> = TABLES.into_iter().chain([&REJECTED]).map(documented).collect();
    testkit::assert_golden(page, &format!("{head}{BEGIN}\n{}", tables.join("\n")));
}

#[test]
fn files_have_the_documented_columns_and_no_types_that_engines_disagree_on() {
    let (_, out) = &exported()[0];
    for table in TABLES.into_iter().filter(|table| !table.on_request) {
        let found = TableFile::open(out, table.name).columns_of_schema();
        let expected: Vec<_> = table
            .columns
            .iter()
            .map(|column| {
                let physical = match column.kind {
                    Kind::Long => "INT64",
                    Kind::Int => "INT32",
                    Kind::Double => "DOUBLE",
                    Kind::Bool => "BOOLEAN",
                    Kind::Text => "BYTE_ARRAY",
                };
                (column.name.to_owned(), physical.to_owned(), column.nullable)
            })
            .collect();
        assert_eq!(found, expected, "{}", table.name);
    }
}
