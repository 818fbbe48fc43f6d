//! Checks and chores of the repository: `cargo xtask help` lists them.

#![forbid(unsafe_code)]

mod amplify;
mod bpf;
mod compare;
mod doc_examples;
mod doc_paths;
mod fixtures;
mod import_cycles;
mod layers;
mod limits;
mod map;
mod page;
mod promises;
mod repository;
mod same_outputs;
mod source_rules;
mod sql_inputs;
mod test_programs;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks and chores of the Hyperscope repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check the dependencies between crates, the place of unsafe code, and the first lines of
    /// files.
    Layers,
    /// Check the bundled recordings against fixtures/PROVENANCE.toml.
    Fixtures,
    /// Check that the pages in web/dist were built from the sources in web/.
    Page,
    /// Check that the programs in bpf/ were built from the sources there.
    Bpf,
    /// Check that docs/limits.md has every limit of the code.
    Limits {
        /// Rewrite the table instead of checking it.
        #[arg(long)]
        write: bool,
    },
    /// Check the list of crates, the files that docs/howto names, and paths in all documents.
    Map {
        /// Rewrite the list instead of checking it.
        #[arg(long)]
        write: bool,
    },
    /// Check that each promise of docs/specification.md names tests that exist.
    Promises,
    /// Make a recording of any size out of a real one by repeating it.
    Amplify(amplify::Arguments),
    /// Measure Hyperscope, trace-cmd and cat on the same recordings.
    Compare(compare::Arguments),
    /// Measure a run of a program; used by `compare`.
    #[command(hide = true)]
    Measure(compare::MeasureArguments),
    /// Compare the outputs of two builds for all bundled recordings, for a change that must not
    /// alter them.
    SameOutputs(same_outputs::Arguments),
    /// Run all tests; tests that mostly wait run in parallel with tests that compute.
    Tests,
    /// Check whether inputs of the tests of hyperscope-sql have changed since they last passed.
    SqlInputs {
        /// Record the inputs as tested.
        #[arg(long)]
        write: bool,
    },
    /// Print the sha256 of files in the format of fixtures/PROVENANCE.toml.
    Sum {
        /// Files to sum.
        files: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().chore {
        Chore::Tests => test_programs::run(),
        Chore::Layers => layers::check()
            .and(import_cycles::check())
            .and(source_rules::check())
            .and(doc_examples::check()),
        Chore::Fixtures => fixtures::check(),
        Chore::Page => page::check(),
        Chore::Bpf => bpf::check(),
        Chore::Limits { write } => limits::check(write),
        Chore::Map { write } => map::check(write).and(doc_paths::check()),
        Chore::Promises => promises::check(),
        Chore::Amplify(arguments) => amplify::run(&arguments),
        Chore::Compare(arguments) => compare::run(&arguments),
        Chore::Measure(arguments) => compare::measure_self(&arguments),
        Chore::SameOutputs(arguments) => same_outputs::run(&arguments),
        Chore::SqlInputs { write: true } => sql_inputs::write(),
        Chore::SqlInputs { write: false } => sql_inputs::check(),
        Chore::Sum { files } => fixtures::print_sums(&files),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
