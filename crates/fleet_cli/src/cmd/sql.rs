//! `hyperscope sql`: executes hyperscope-sql, which answers queries, and lets hyperscope read recordings for it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::ValueEnum;

use crate::args::sql::SqlArgs;
use command::programs::{HYPERSCOPE, SQL};
use command::verb::{Memory, Range, VerbArgs};

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
    let mut command = Command::new(SQL.path()?);
    if args.list {
        command.arg("--list");
    } else {
        command.arg("--reader").arg(HYPERSCOPE.path()?);
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
    Err(anyhow!(command.exec()).context(format!("cannot run {}", SQL.name)))
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Arguments passed on to `export`, which reads the recordings.
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
    use clap::FromArgMatches;
    use command::verbs::command;

    use super::*;
    use crate::verbs::Verb;

    fn parsed(line: impl IntoIterator<Item = OsString>) -> Verb {
        let matches = command::<Verb>().try_get_matches_from(line).unwrap();
        Verb::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn recordings_are_read_as_an_export_with_the_same_options_would() {
        let line = "hyperscope sql --from +1.5 --vm a,b --vcpu 0,2-3 --name vm-7=a --begun 1795305600.5 --host web7 \
                    --label pool=x --details --method windows --max-memory 64M Q trace.dat";
        let Verb::Sql(args) = parsed(line.split_ascii_whitespace().map(OsString::from)) else {
            unreachable!("another verb")
        };
        let expected = "--max-memory=67108864 --max-spool=4294967296 --from=+1.5 --vm=a --vm=b --name=vm-7=a --vcpu=0,2-3 \
                        --method=windows --host=web7 --begun=1795305600.5 --label=pool=x --details";
        let given: Vec<String> =
            options(&args).into_iter().map(|option| option.into_string().unwrap()).collect();
        assert_eq!(given.join(" "), expected);
    }
}
