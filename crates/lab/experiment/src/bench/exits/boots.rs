//! Runs the steps of an ablation in a lab, and reboots its machines if steps need that.

use std::collections::BTreeMap;

use labguest::exitcost::{AblationOptions, AblationSheet, StepSheet, Toggle};

use crate::bench::error::Result;
use crate::bench::exits::counts::StepCounts;
use crate::bench::exits::ladder::{Ablation, Ladders};
use crate::bench::exits::levels::Levels;

/// Extra boot options of machines for a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Boot {
    /// Extra kernel command line arguments of the first machine.
    pub(super) line: String,
    pub(super) guest_line: String,
    /// Extra CPU features of the first machine for emulation, separated by commas.
    pub(super) processor: String,
}

impl Levels<'_> {
    /// Runs all steps of each round in the plan's order, but grouped by boot options: first those with the options of
    /// the first step, then the next.
    pub(super) fn ablate(&mut self, ablation: &Ablation) -> Result<Vec<Ladders>> {
        let options = ablation.plan(&self.plan.kinds, self.plan.runs);
        let boots: Vec<Boot> = options.steps.iter().map(|step| Boot::for_step(step)).collect();
        let mut refused: BTreeMap<&Boot, String> = BTreeMap::new();
        let levels = usize::from(self.plan.levels);
        let mut sheets: Vec<Option<AblationSheet>> = vec![None; levels];
        let mut counts = vec![StepCounts::new(options.steps.len()); levels];
        for (round, order) in (1..).zip(&options.orders) {
            for (boot, steps) in by_boot(order, &boots) {
                if refused.contains_key(boot) {
                    continue;
                }
                self.report(format!("round {round} of {}, {}", options.rounds, boot.name()));
                self.boot(boot)?;
                if let Some(why) = self.not_in_force(boot)? {
                    refused.insert(boot, why);
                    continue;
                }
                let part = part(&options, steps);
                for (level, sheet) in (1..).zip(&mut sheets) {
                    add(sheet, self.ask(level, "exit-ablation", &part)?);
                }
                if ablation.counts_exits && round == 1 {
                    for (level, counts) in (1..).zip(&mut counts) {
                        self.report(format!("exits by reason in level {level}, {}", boot.name()));
                        self.count_exits(level, &part, counts)?;
                    }
                }
            }
        }
        let ladders = |((level, sheet), counts): ((u8, Option<AblationSheet>), StepCounts)| {
            let mut sheet = sheet?;
            for (boot, step) in boots.iter().zip(&mut sheet.steps) {
                if let Some(why) = refused.get(boot) {
                    step.not_measured = Some(why.clone());
                }
            }
            let name = format!("vm in level {level}");
            let mut ladders = Ladders::new(name, Some(level), ablation, &self.plan.kinds, sheet);
            counts.put_into(&mut ladders);
            Some(ladders)
        };
        Ok((1..).zip(sheets).zip(counts).filter_map(ladders).collect())
    }

    /// Why boot options have no effect, if so: a module lacks the parameter, or the processor lacks the feature.
    fn not_in_force(&mut self, boot: &Boot) -> Result<Option<String>> {
        if !boot.guest_line.is_empty() && self.plan.levels < 2 {
            return Ok(Some("no guest can boot with it: use --levels 2".into()));
        }
        for (level, line) in [(1, &boot.line), (2, &boot.guest_line)] {
            if let Some(why) = self.parameter_not_in_force(level, line)? {
                return Ok(Some(why));
            }
        }
        self.feature_not_there(&boot.processor)
    }

    fn parameter_not_in_force(&mut self, level: u8, line: &str) -> Result<Option<String>> {
        for word in line.split_whitespace() {
            let of_module = word.split_once('=').and_then(|(name, value)| {
                let (module, parameter) = name.split_once('.')?;
                Some((format!("/sys/module/{module}/parameters/{parameter}"), value))
            });
            let Some((file, value)) = of_module else { continue };
            let script = format!("cat '{file}' 2>/dev/null || true");
            let output = self.check(level, &["sh", "-c", &script])?;
            let output = output.trim();
            if output.is_empty() {
                return Ok(Some(format!("{file} is missing")));
            }
            if truth(output) != truth(value) {
                return Ok(Some(format!("{file} is still {output}")));
            }
        }
        Ok(None)
    }

    /// The emulator silently ignores unsupported features: checks the kernel's list.
    fn feature_not_there(&mut self, processor: &str) -> Result<Option<String>> {
        if processor.is_empty() {
            return Ok(None);
        }
        let cpuinfo = self.check(1, &["sh", "-c", "grep -m 1 ^flags /proc/cpuinfo"])?;
        let has =
            |name: &str| cpuinfo.split_whitespace().any(|flag| flag == name.replace('-', "_"));
        let why = processor.split(',').find_map(|name| match name.strip_prefix('-') {
            Some(name) if has(name) => Some(format!("the processor still has {name}")),
            None if !has(name) => {
                Some(format!("level 1's /proc/cpuinfo lacks {name}: the emulator does not support it, or the kernel does not list it"))
            }
            _ => None,
        });
        Ok(why)
    }
}

impl Boot {
    /// The boot options of a step.
    fn for_step(step: &[Toggle]) -> Self {
        let mut boot = Self::default();
        for toggle in step {
            let (text, more, between) = match toggle {
                Toggle::Boot { text } => (&mut boot.line, text, " "),
                Toggle::GuestBoot { text } => (&mut boot.guest_line, text, " "),
                Toggle::Processor { name } => (&mut boot.processor, name, ","),
                _ => continue,
            };
            if !text.is_empty() {
                text.push_str(between);
            }
            text.push_str(more);
        }
        boot
    }

    fn name(&self) -> String {
        let parts =
            [("", &self.line), ("guests with ", &self.guest_line), ("processor ", &self.processor)];
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
        let parts: Vec<String> = parts.map(|(what, text)| format!("{what}{text}")).collect();
        if parts.is_empty() {
            "default boot".into()
        } else {
            format!("booted with {}", parts.join(", "))
        }
    }
}

/// Groups steps by boot options, in the order of each group's first step.
fn by_boot<'b>(order: &[usize], boots: &'b [Boot]) -> Vec<(&'b Boot, Vec<usize>)> {
    let mut groups: Vec<(&Boot, Vec<usize>)> = Vec::new();
    for &at in order {
        let Some(boot) = boots.get(at) else { continue };
        match groups.iter_mut().find(|(group_boot, _)| *group_boot == boot) {
            Some((_, steps)) => steps.push(at),
            None => groups.push((boot, vec![at])),
        }
    }
    groups
}

/// One round of these steps, in a machine that was booted for them.
fn part(options: &AblationOptions, steps: Vec<usize>) -> AblationOptions {
    let in_force =
        |step: &Vec<Toggle>| step.iter().filter(|toggle| !toggle.needs_boot()).cloned().collect();
    AblationOptions {
        kinds: options.kinds.clone(),
        rounds: 1,
        operations: options.operations,
        steps: options.steps.iter().map(in_force).collect(),
        orders: vec![steps],
    }
}

/// Adds a round's runs to those of earlier rounds.
fn add(sum: &mut Option<AblationSheet>, more: AblationSheet) {
    let Some(sum) = sum else {
        *sum = Some(more);
        return;
    };
    for (sum, more) in sum.steps.iter_mut().zip(more.steps) {
        if more.not_measured.is_some() {
            // A step that failed in one round fails as a whole: its other rounds can't be compared.
            *sum = StepSheet { not_measured: more.not_measured, ..StepSheet::default() };
        } else if sum.not_measured.is_none() {
            sum.cycles.iter_mut().zip(more.cycles).for_each(|(sum, more)| sum.extend(more));
        }
    }
}

/// Normalises the kernel's spellings of true and false.
fn truth(value: &str) -> &str {
    match value {
        "1" | "y" | "Y" | "on" => "Y",
        "0" | "n" | "N" | "off" => "N",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(text: &str) -> Toggle {
        Toggle::Boot { text: text.into() }
    }

    #[test]
    fn steps_that_need_the_same_machines_are_taken_together() {
        let line = |line: &str| Boot { line: line.into(), ..Boot::default() };
        let guest = Boot { guest_line: "a=1".into(), ..Boot::default() };
        let boots = [line(""), line("a=1"), line(""), line("a=1 b=2"), guest.clone()];
        let groups = by_boot(&[3, 1, 2, 4, 0], &boots);
        let expected = [
            (&boots[3], vec![3]),
            (&boots[1], vec![1]),
            (&boots[0], vec![2, 0]),
            (&guest, vec![4]),
        ];
        assert_eq!(groups, expected);
    }

    #[test]
    fn a_step_says_what_its_machines_are_booted_with() {
        let processor = |name: &str| Toggle::Processor { name: name.into() };
        let step = [boot("a=1"), Toggle::Kprobe, processor("vgif"), boot("b=2"), processor("-npt")];
        let step_boot = Boot::for_step(&step);
        let expected = Boot {
            line: "a=1 b=2".into(),
            guest_line: String::new(),
            processor: "vgif,-npt".into(),
        };
        assert_eq!(step_boot, expected);
        assert_eq!(step_boot.name(), "booted with a=1 b=2, processor vgif,-npt");
        assert_eq!(Boot::default().name(), "default boot");
    }

    #[test]
    fn machines_are_not_asked_to_boot_themselves() {
        let options = AblationOptions {
            kinds: Vec::new(),
            rounds: 4,
            operations: 5,
            steps: vec![Vec::new(), vec![boot("a=1"), Toggle::Vhost]],
            orders: Vec::new(),
        };
        let part = part(&options, vec![1]);
        assert_eq!(part.steps, [Vec::new(), vec![Toggle::Vhost]]);
        assert_eq!((part.rounds, part.orders), (1, vec![vec![1]]));
    }
}
