//! `hyperscope lab run`: runs a scenario, records it, and checks what the recordings contain.

use std::io::{self, Write};
use std::path::Path;

use anyhow::bail;
use lab::{Arch, Cache, Description, Lab, Scenario, Step, Truth, UpOptions};
use printable::messages;
use session::{Session, VmNames};

use super::{boot_events, interrupted, truth};
use crate::args::lab::LabRunArgs;
use crate::lab_steps::LabSteps;

/// Max repetitions of a scenario because a machine hangs.
const RUN_AGAIN: u32 = 2;

/// Runs a scenario in the lab of this name if it is up and fits, otherwise in a new one.
///
/// # Errors
/// When a step fails, or the recordings lack what they must contain.
pub(crate) fn run(cache: &Cache, named: &Lab, args: &LabRunArgs) -> anyhow::Result<()> {
    let Some(name) = args.scenario.as_ref().filter(|_| !args.list) else { return list() };
    let mut scenario = Scenario::find(name)?;
    args.sample_hz.into_iter().for_each(|hz| scenario.sample(hz));
    let arch = args.arch.map_or_else(Arch::native, Arch::from);
    let wanted = scenario.description(arch);
    let to = args.output.clone().unwrap_or_else(|| format!("{}.hscope", scenario.name).into());
    if to.join("host.dat").exists() {
        bail!("{} already holds a recording: name another folder with -o", to.display());
    }
    let options = UpOptions { offline: args.offline, snapshot: !args.no_snapshot };
    let steps = LabSteps::new();
    lab::need_module(cache, &scenario, &wanted, &options, &|step| steps.show(&step))?;
    let up = !scenario.changes_machines() && named.is_up() && fits(named, &wanted);
    // Leaves a user's lab unchanged.
    let own_lab =
        (!up).then(|| Lab::named(cache, &format!("run-{}", std::process::id()))).transpose()?;
    let guard = own_lab.as_ref().map(interrupted::end_when_interrupted).transpose()?;
    let ran = match &own_lab {
        None => named.run(&scenario, &to, &|step| steps.show(&step)),
        Some(own_lab) => in_own(own_lab, &scenario, (&wanted, &options), &to, &steps),
    };
    steps.finish();
    drop(guard);
    if let Some(own_lab) = own_lab {
        own_lab.down()?;
    }
    check(&ran?, &wanted.guest.append, &to)
}

/// Runs it in a lab that is brought up for it, and in another one if a machine hangs.
fn in_own(
    own_lab: &Lab,
    scenario: &Scenario,
    (wanted, options): (&Description, &UpOptions),
    to: &Path,
    steps: &LabSteps,
) -> lab::Result<Vec<Truth>> {
    let mut again = 0;
    loop {
        let ran = own_lab
            .up(wanted, options, &|step| steps.show(&step))
            .and_then(|_| own_lab.run(scenario, to, &|step| steps.show(&step)));
        let Err(hangs) = &ran else { return ran };
        if again == RUN_AGAIN || !hangs.is_hang() {
            return ran;
        }
        again += 1;
        steps.show(&Step { text: format!("{hangs}\n  trying again in new machines"), usual: None });
        own_lab.down()?;
    }
}

fn fits(lab: &Lab, wanted: &Description) -> bool {
    lab.description().is_ok_and(|description| description.fits(wanted))
}

/// Shows expected and recorded events.
fn check(truths: &[Truth], command_line: &str, folder: &Path) -> anyhow::Result<()> {
    let recordings = Session::open(&[folder.to_owned()], &VmNames::default())?.into_recordings();
    let mut err = messages();
    for event in boot_events::missing(command_line, &recordings) {
        writeln!(
            err,
            "hyperscope: the guest's kernel has no event {event}, so the recording lacks it; the console (hyperscope lab console) may show why"
        )?;
    }
    let mut wrong = 0;
    for truth in truths {
        let counted = truth::count(truth, &recordings)?;
        let holds = truth::holds(truth, counted);
        wrong += u32::from(!holds);
        let made = if truth.at_least { "at least " } else { "" };
        let verdict = if holds { "as expected" } else { "WRONG" };
        writeln!(
            err,
            "hyperscope: {}: {made}{} made, {counted} recorded: {verdict}",
            truth.what, truth.count
        )?;
    }
    writeln!(err, "hyperscope: session: {}", folder.display())?;
    if wrong > 0 {
        bail!(
            "{wrong} of {} counts differ; hyperscope info {} shows losses",
            truths.len(),
            folder.display()
        );
    }
    Ok(())
}

fn list() -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    for scenario in Scenario::bundled()? {
        writeln!(stdout, "{:<12} {} levels  {}", scenario.name, scenario.levels, scenario.summary)?;
    }
    Ok(())
}
