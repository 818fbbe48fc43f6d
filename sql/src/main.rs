//! `hyperscope-sql`: SQL over tables of recordings or of a lake. `hyperscope sql` runs it.
//!
//! Exits with code 0 if the query was answered, 1 at an error of the query or a source, 2 at wrong arguments.

#![forbid(unsafe_code)]

mod answer;
mod at_fault;
mod columns;
mod engine;
mod foreign_tables;
mod needed;
mod prompt;
mod questions;
mod recorded;
mod running;
mod s3;
mod statement;
mod stored_lake;
mod tables;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{cast, ident};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use lake_store::is_in_store;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;

use crate::engine::{Asked, Engine};
use crate::prompt::Prompt;
use crate::recorded::Reader;
use crate::s3::S3;
use crate::stored_lake::StoredLake;
use crate::tables::Source;

/// SQL over tables of recordings.
#[derive(Debug, Parser)]
#[command(
    name = "hyperscope-sql",
    version,
    after_help = "Examples:\n  \
    hyperscope-sql \"SELECT reason, SUM(cost_ns) FROM exits GROUP BY reason\" trace.dat\n  \
    hyperscope-sql @slow-exits LAKE\n  \
    hyperscope-sql --list"
)]
struct Args {
    /// The query, or @NAME of a question that is known by name, and what is asked: a lake, a folder of tables, or
    /// recordings; without a query, queries are read from a prompt
    #[arg(value_name = "QUERY SOURCE", required_unless_present_any = ["list", "serve_store"])]
    asked: Vec<OsString>,
    /// How the answer is written
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    /// Write to this file in place of standard output; as Parquet where its name ends so
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Memory that the query may take before it uses the disk, in MiB
    #[arg(long, value_name = "MIB", default_value = "1024")]
    memory: usize,
    /// Ask another engine: duckdb, duckdb=PROGRAM, duckdb=PYTHON with its module, spark=MASTER, or
    /// trino=https://HOST:PORT/CATALOG
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// List the questions that are known by name
    #[arg(long)]
    list: bool,
    /// Answer another program's calls to the store of this lake, from standard input
    #[arg(long, value_name = "LAKE", hide = true)]
    serve_store: Option<PathBuf>,
    /// The program that reads recordings
    #[arg(long, value_name = "PROGRAM", hide = true, default_value = "hyperscope")]
    reader: PathBuf,
    /// An option for it
    #[arg(long, value_name = "OPTION", hide = true, allow_hyphen_values = true)]
    reader_option: Vec<OsString>,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Table,
    /// One JSON document
    Json,
    /// Comma-separated values with a header line
    Csv,
}

/// The query, unless a prompt reads it, and its sources.
fn query_and_sources(arguments: &[OsString]) -> Result<(Option<String>, Vec<PathBuf>), String> {
    let paths = |paths: &[OsString]| paths.iter().map(PathBuf::from).collect();
    match arguments {
        [] => Err("a query and a source are missing".to_owned()),
        [argument] if Path::new(argument).exists() || is_in_store(Path::new(argument)) => {
            Ok((None, paths(arguments)))
        }
        [argument] => {
            Err(format!("{}: there is no such file; a query needs a source", argument.display()))
        }
        [query, sources @ ..] => {
            let query = query.to_str().ok_or("the query is no UTF-8")?;
            Ok((Some(statement::text_of(query)?.to_owned()), paths(sources)))
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.list {
        return done(questions::list(&mut io::stdout().lock()));
    }
    if let Some(lake) = &args.serve_store {
        return done(serve_store(lake));
    }
    let (query, sources) = match query_and_sources(&args.asked) {
        Ok(found) => found,
        Err(why) => return fails(&why, 2),
    };
    if sources.iter().any(|source| source.as_os_str() == "-") {
        return fails("a pipe can be read only once: write it to a file first", 2);
    }
    if let Some(output) = args.output.as_deref().filter(|output| is_one_of(output, &sources)) {
        let why = format!("{} is a source to be read; write to another file", output.display());
        return fails(&why, 1);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return done(Err(error)),
    };
    let code = runtime.block_on(async {
        tokio::select! {
            code = run(&args, query.as_deref(), &sources) => code,
            signal = ended() => ExitCode::from(128 + signal),
        }
    });
    // Tasks that still read or wait for input are abandoned.
    runtime.shutdown_background();
    code
}

/// Answers calls; errors become replies, because the calling program words them.
fn serve_store(lake: &Path) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let shown = format!("{}: ", lake.display());
    let named = StoredLake::parse(lake)
        .map_err(|why| io::Error::other(why.strip_prefix(&shown).unwrap_or(&why).to_owned()));
    let (calls, replies) = (io::stdin().lock(), io::BufWriter::new(io::stdout().lock()));
    let store = named.and_then(|lake| S3::for_lake(&lake, runtime.handle().clone()));
    lake_store::serve(store, calls, replies)
}

fn is_one_of(output: &Path, sources: &[PathBuf]) -> bool {
    let place = std::fs::canonicalize(output).ok();
    place.is_some() && sources.iter().any(|source| std::fs::canonicalize(source).ok() == place)
}

/// Waits for a signal that ends the program, so that temporary files are removed first.
async fn ended() -> u8 {
    let (sender, receiver) = oneshot::channel();
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return std::future::pending().await;
    };
    std::thread::spawn(move || {
        let first = signals.forever().next();
        // The receiver is gone if the program ends by itself.
        let _ = sender.send(first.unwrap_or(SIGTERM));
    });
    match receiver.await {
        Ok(signal) => u8::try_from(signal).unwrap_or(0),
        Err(_) => std::future::pending().await,
    }
}

async fn run(args: &Args, query: Option<&str>, sources: &[PathBuf]) -> ExitCode {
    if let Some(engine) = &args.engine {
        // Parsed here: the argument parser's error would repeat the whole text, which may contain a password.
        let engine = match engine.parse::<Engine>() {
            Ok(engine) => engine,
            Err(why) => return fails(&why, 2),
        };
        let Some(query) = query else { return fails("--engine takes a query", 2) };
        return match answered_by(&engine, args, query, sources).await {
            Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
            Err(error) => fails(&at_fault::in_words(&error), 1),
            Ok(()) => ExitCode::SUCCESS,
        };
    }
    let context = match opened(args, sources).await {
        Ok(context) => context,
        Err(error) => return fails(&at_fault::explain(&error, ""), 1),
    };
    let Some(query) = query else { return ask(args, &context).await };
    match answered(args, &context, query).await {
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => fails(&at_fault::explain(&error, query), 1),
        Ok(()) => ExitCode::SUCCESS,
    }
}

/// Answers queries from a prompt, or from a pipe.
async fn ask(args: &Args, context: &SessionContext) -> ExitCode {
    let mut prompt = Prompt::new();
    loop {
        let input = match tokio::task::block_in_place(|| prompt.next()) {
            Ok(Some(input)) => input,
            end => return done(end.map(|_| ())),
        };
        let failed = match statement::text_of(&input) {
            Err(why) => Some(fails(&why, 2)),
            Ok(text) => match answered(args, context, text).await {
                Err(error) if is_broken_pipe(&error) => return ExitCode::SUCCESS,
                Err(error) => Some(fails(&at_fault::explain(&error, text), 1)),
                Ok(()) => None,
            },
        };
        if let Some(code) = failed.filter(|_| prompt.is_pipe()) {
            return code;
        }
    }
}

async fn answered(args: &Args, context: &SessionContext, query: &str) -> Result<()> {
    let frame = statement::answer(context, query).await?;
    answer::write(frame, args.format, args.output.as_deref()).await
}

/// Runs the query on another engine, and writes the result.
async fn answered_by(engine: &Engine, args: &Args, query: &str, sources: &[PathBuf]) -> Result<()> {
    let reader = Reader::new(args.reader.clone(), args.reader_option.clone(), sources.to_vec())?;
    let query = statement::single(query)?;
    let source = Source::from_paths(sources)?;
    let named = tables::named(&source, &reader, query).await?;
    let lake = source.lake().map(std::path::absolute).transpose()?;
    let (memory_mib, lake) = (args.memory, lake.as_deref());
    let request = Asked { tables: &named, query, memory_mib, lake, store: source.store() };
    let answer = engine.ask(&request).await?;
    // Reads one file after the other: they are in the order of the rows.
    let config = SessionConfig::new().with_target_partitions(1);
    let context = SessionContext::new_with_config(config);
    let frame = context.read_parquet(answer.files()?, ParquetReadOptions::default()).await?;
    // All numbers with a fraction become doubles, whatever the engine's type.
    let columns = frame.schema().fields().iter().map(|field| {
        let column = ident(field.name());
        match field.data_type() {
            DataType::Decimal128(..) => cast(column, DataType::Float64).alias(field.name()),
            _ => column,
        }
    });
    let columns: Vec<_> = columns.collect();
    answer::write(frame.select(columns)?, args.format, args.output.as_deref()).await
}

async fn opened(args: &Args, sources: &[PathBuf]) -> Result<SessionContext> {
    let context = context(args)?;
    let source = Source::from_paths(sources)?;
    let reader = Reader::new(args.reader.clone(), args.reader_option.clone(), sources.to_vec())?;
    tables::register(&context, &source, reader).await?;
    questions::make_views(&context).await?;
    Ok(context)
}

fn context(args: &Args) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_information_schema(true);
    config.options_mut().sql_parser.collect_spans = true;
    config.options_mut().execution.parquet.pushdown_filters = true;
    let pool = FairSpillPool::new(args.memory.saturating_mul(1 << 20));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
    Ok(SessionContext::new_with_config_rt(config, runtime))
}

fn is_broken_pipe(error: &DataFusionError) -> bool {
    let is_epipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    match error.find_root() {
        DataFusionError::IoError(error) => is_epipe(error),
        DataFusionError::External(cause) => {
            matches!(cause.downcast_ref::<csv::Error>().map(csv::Error::kind),
                Some(csv::ErrorKind::Io(error)) if is_epipe(error))
        }
        _ => false,
    }
}

fn done(result: io::Result<()>) -> ExitCode {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fails(&error.to_string(), 1),
        _ => ExitCode::SUCCESS,
    }
}

fn fails(why: &str, code: u8) -> ExitCode {
    let text = format!("hyperscope-sql: {}\n", printable::lines(why));
    let _ = io::stderr().lock().write_all(text.as_bytes());
    ExitCode::from(code)
}
