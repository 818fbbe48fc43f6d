//! `hyperscope sql`: becomes hyperscope-sql, which answers queries, and has this program read recordings for it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use crate::args::sql::SqlArgs;
use crate::sql_program;
use crate::verb::{Memory, Range, VerbArgs};

impl VerbArgs for SqlArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        (&self.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &SqlArgs) -> anyhow::Result<()> {
    let mut command = Command::new(sql_program::path()?);
    if args.list {
        command.arg("--list");
    } else {
        command
            .arg("--reader")
            .arg(std::env::current_exe().context("cannot find the path of this program")?);
        for option in options(args) {
            command.arg("--reader-option").arg(option);
        }
        command.arg("--memory").arg(args.memory.to_string());
        command.arg("--format").arg(name(&args.format));
        if let Some(output) = &args.output {
            command.arg("--output").arg(output);
        }
        if let Some(engine) = &args.engine {
            command.arg("--engine").arg(engine);
        }
        command.arg("--").args(&args.asked);
    }
    // exec: exit code and signals are those of the program.
    Err(anyhow!(command.exec()).context(format!("cannot run {}", sql_program::NAME)))
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What `export` is given, so that it reads recordings as asked here.
fn options(args: &SqlArgs) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        all.extend(value.map(|value| OsString::from(format!("--{name}={value}"))));
    };
    add("max-memory", Some(args.reading.max_memory.0.to_string()));
    add("max-spool", Some(args.reading.max_spool.to_string()));
    let (range, vms) = (args.part.range, &args.part.vms);
    add("from", range.from.map(|time| time.to_string()));
    add("until", range.to.map(|time| time.to_string()));
    vms.vm.iter().for_each(|vm| add("vm", Some(vm.clone())));
    vms.names
        .names
        .iter()
        .for_each(|vm_name| add("name", Some(format!("{}={}", vm_name.vm, vm_name.name))));
    add("vcpu", vms.vcpu.as_ref().map(ToString::to_string));
    add("method", args.method.method().map(|method| method.name().to_owned()));
    let tables = &args.tables;
    tables.tables.iter().for_each(|table| add("tables", Some(table.0.name.to_owned())));
    add("host", tables.host.clone());
    add("begun", tables.begun.map(|time| time.to_string()));
    tables.labels.iter().for_each(|label| add("label", Some(format!("{}={}", label.0, label.1))));
    all.extend(tables.details.then(|| "--details".into()));
    all
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::verbs::{Cli, Verb};

    #[test]
    fn recordings_are_read_as_an_export_with_the_same_options_would() {
        let line = "hyperscope sql --from +1.5 --vm a,b --vcpu 0,2-3 --name vm-7=a --begun 1795305600.5 --host web7 \
                    --label pool=x --details --method windows --max-memory 64M Q trace.dat";
        let Verb::Sql(args) = Cli::parse_from(line.split_ascii_whitespace()).verb else {
            unreachable!("another verb")
        };
        let given = options(&args);
        let export = ["hyperscope", "export", "--to", "parquet", "-o", "x", "--only", "exits"];
        let line = export.into_iter().map(OsString::from).chain(given);
        let Verb::Export(read) = Cli::parse_from(line.chain(["trace.dat".into()])).verb else {
            unreachable!("another verb")
        };
        assert_eq!(read.from, args.part.range.from);
        assert_eq!(read.vms.vm, ["a", "b"]);
        assert_eq!(read.vms.names.names, args.part.vms.names.names);
        assert_eq!(read.vms.vcpu.map(|vcpus| vcpus.to_string()).as_deref(), Some("0,2-3"));
        assert_eq!(read.memory.max_memory.0, 64 << 20);
        assert_eq!(read.method.method(), args.method.method());
        assert_eq!(read.tables.begun.map(|time| time.ns()), Some(1_795_305_600_500_000_000));
        assert_eq!(read.tables.host.as_deref(), Some("web7"));
        assert!(read.tables.details && read.tables.labels.len() == 1);
    }
}
