//! Statements: a query, a named query, the list of tables, the plan of a query.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use lake_store::tables::{TABLES, table};

use crate::questions::{QUESTIONS, views};

/// A statement as written; for `@NAME`, the text of the named query.
///
/// # Errors
/// When there is no such name.
pub(crate) fn text_of(statement: &str) -> Result<&str, String> {
    let statement = statement.trim();
    let Some(name) = statement.strip_prefix('@') else { return Ok(statement) };
    let found = QUESTIONS.iter().find(|question| question.name == name);
    found
        .map(|question| question.sql)
        .ok_or_else(|| format!("no question is called {name}; --list shows those there are"))
}

/// A single statement, without the semicolon at its end.
///
/// # Errors
/// When there is none, or several.
pub(crate) fn single(statement: &str) -> Result<&str> {
    let statement = statement.trim().trim_end_matches(';').trim_end();
    let failed = |why: &str| Err(DataFusionError::External(why.into()));
    if statement.is_empty() {
        return failed("the query is empty");
    }
    // The engine refuses a text without valid tokens.
    let tokens = Tokenizer::new(&GenericDialect, statement).tokenize().unwrap_or_default();
    if tokens.contains(&Token::SemiColon) {
        return failed("several statements: an argument is one; more are read from standard input");
    }
    Ok(statement)
}

/// The rows that answer a statement; reads nothing for them yet.
///
/// # Errors
/// When it is invalid.
pub(crate) async fn answer(context: &SessionContext, statement: &str) -> Result<DataFrame> {
    let statement = single(statement)?;
    if let Some(name) = statement.strip_prefix("\\d") {
        return match name.trim() {
            "" => list(context),
            name => describe(context, name).await,
        };
    }
    let explained = statement.strip_prefix(".explain").map(|query| format!("EXPLAIN {query}"));
    // Queries may create views; only -o writes files.
    let options = SQLOptions::new().with_allow_dml(false);
    context.sql_with_options(explained.as_deref().unwrap_or(statement), options).await
}

/// Tables and views, with the meaning of their rows.
fn list(context: &SessionContext) -> Result<DataFrame> {
    let tables = TABLES.iter().map(|table| ("table", table.name, table.about.to_owned()));
    let views = views().map(|(name, about, _)| ("view", name, about));
    let all: Vec<_> = tables.chain(views).collect();
    rows(
        context,
        [
            ("name", all.iter().map(|row| row.1.to_owned()).collect()),
            ("kind", all.iter().map(|row| row.0.to_owned()).collect()),
            ("about", all.iter().map(|row| row.2.clone()).collect()),
        ],
    )
}

/// The columns of a table or view.
async fn describe(context: &SessionContext, name: &str) -> Result<DataFrame> {
    let known = table(name).map(|table| table.columns).unwrap_or_default();
    let found = context.table(name).await?;
    let fields = found.schema().fields();
    let about = |name: &String| {
        known.iter().find(|column| column.name == name).map_or("", |column| column.about)
    };
    let type_of = |kind: &datafusion::arrow::datatypes::DataType| match kind.to_string().as_str() {
        "Int64" => "BIGINT".to_owned(),
        "Int32" => "INT".to_owned(),
        "Float64" => "DOUBLE".to_owned(),
        "Boolean" => "BOOLEAN".to_owned(),
        "Utf8View" | "Utf8" => "STRING".to_owned(),
        other => other.to_owned(),
    };
    rows(
        context,
        [
            ("column", fields.iter().map(|field| field.name().clone()).collect()),
            ("type", fields.iter().map(|field| type_of(field.data_type())).collect()),
            ("about", fields.iter().map(|field| about(field.name()).to_owned()).collect()),
        ],
    )
}

fn rows<const N: usize>(
    context: &SessionContext,
    columns: [(&str, Vec<String>); N],
) -> Result<DataFrame> {
    let array = |texts: Vec<String>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let columns = columns.map(|(name, texts)| (name, array(texts)));
    let batch = RecordBatch::try_from_iter(columns).map_err(DataFusionError::from)?;
    context.read_batch(batch)
}
