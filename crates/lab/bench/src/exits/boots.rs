//! Takes the steps of an ablation in a lab, whose first machine is booted again for some of them.

use std::collections::BTreeMap;

use exitcost::{AblationOptions, AblationSheet, StepSheet, Toggle};

use crate::error::Result;
use crate::exits::ladder::{Ablation, Ladders};
use crate::exits::levels::Levels;

impl Levels<'_> {
    /// Takes all steps in each round, in the order that the plan has for it: first those of the kernel that
    /// the first one of them needs, then those of the next.
    pub(super) fn ablate(&mut self, ablation: &Ablation) -> Result<Vec<Ladders>> {
        let whole = ablation.plan(&self.plan.kinds, self.plan.runs);
        let lines: Vec<String> = whole.steps.iter().map(|step| line(step)).collect();
        let mut refused: BTreeMap<&str, String> = BTreeMap::new();
        let mut sheets: Vec<Option<AblationSheet>> = vec![None; usize::from(self.plan.levels)];
        for (round, order) in (1..).zip(&whole.orders) {
            for (line, steps) in by_line(order, &lines) {
                if refused.contains_key(line) {
                    continue;
                }
                let booted = if line.is_empty() { "as usual" } else { line };
                self.report(format!("round {round} of {}, booted with {booted}", whole.rounds));
                self.boot(line)?;
                if let Some(why) = self.not_in_force(line)? {
                    refused.insert(line, why);
                    continue;
                }
                let part = part(&whole, steps);
                for (level, sheet) in (1..).zip(&mut sheets) {
                    add(sheet, self.ask(level, "exit-ablation", &part)?);
                }
            }
        }
        let ladders = |(level, sheet): (u8, Option<AblationSheet>)| {
            let mut sheet = sheet?;
            for (line, step) in lines.iter().zip(&mut sheet.steps) {
                if let Some(why) = refused.get(line.as_str()) {
                    step.not_measured = Some(why.clone());
                }
            }
            let name = format!("vm in level {level}");
            Some(Ladders::new(name, Some(level), ablation, &self.plan.kinds, sheet))
        };
        Ok((1..).zip(sheets).filter_map(ladders).collect())
    }

    /// Why what a command line says for modules is not so, where it is not: the module has no such parameter,
    /// or the processor can't do it.
    fn not_in_force(&mut self, line: &str) -> Result<Option<String>> {
        for word in line.split_whitespace() {
            let of_module = word.split_once('=').and_then(|(name, value)| {
                let (module, parameter) = name.split_once('.')?;
                Some((format!("/sys/module/{module}/parameters/{parameter}"), value))
            });
            let Some((file, value)) = of_module else { continue };
            let script = format!("cat '{file}' 2>/dev/null || true");
            let said = self.check(1, &["sh", "-c", &script])?;
            let said = said.trim();
            if said.is_empty() {
                return Ok(Some(format!("{file}: there is none")));
            }
            if truth(said) != truth(value) {
                return Ok(Some(format!("{file} is {said} all the same")));
            }
        }
        Ok(None)
    }
}

/// What the kernel's command line has to have for a step.
fn line(step: &[Toggle]) -> String {
    step.iter().filter_map(Toggle::boot).collect::<Vec<_>>().join(" ")
}

/// Steps that need the same kernel, in the order of the first of each.
fn by_line<'l>(order: &[usize], lines: &'l [String]) -> Vec<(&'l str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for &at in order {
        let Some(line) = lines.get(at).map(String::as_str) else { continue };
        match groups.iter_mut().find(|(own, _)| *own == line) {
            Some((_, steps)) => steps.push(at),
            None => groups.push((line, vec![at])),
        }
    }
    groups
}

/// One round of these steps, in a machine that was booted for them.
fn part(whole: &AblationOptions, steps: Vec<usize>) -> AblationOptions {
    let in_force = |step: &Vec<Toggle>| {
        step.iter().filter(|toggle| toggle.boot().is_none()).cloned().collect()
    };
    AblationOptions {
        kinds: whole.kinds.clone(),
        rounds: 1,
        operations: whole.operations,
        steps: whole.steps.iter().map(in_force).collect(),
        orders: vec![steps],
    }
}

/// Adds a round's runs to those of the rounds before it.
fn add(sum: &mut Option<AblationSheet>, more: AblationSheet) {
    let Some(sum) = sum else {
        *sum = Some(more);
        return;
    };
    for (sum, more) in sum.steps.iter_mut().zip(more.steps) {
        if more.not_measured.is_some() {
            // In one round is in all: none of the others can be compared.
            *sum = StepSheet { not_measured: more.not_measured, ..StepSheet::default() };
        } else if sum.not_measured.is_none() {
            sum.cycles.iter_mut().zip(more.cycles).for_each(|(sum, more)| sum.extend(more));
        }
    }
}

/// The same word for all that the kernel takes for yes, and for no.
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
    fn steps_that_need_the_same_kernel_are_taken_together() {
        let lines = ["", "a=1", "", "a=1 b=2"].map(str::to_owned);
        let groups = by_line(&[3, 1, 2, 0], &lines);
        assert_eq!(groups, [("a=1 b=2", vec![3]), ("a=1", vec![1]), ("", vec![2, 0])]);
        assert_eq!(line(&[boot("a=1"), Toggle::Kprobe, boot("b=2")]), "a=1 b=2");
    }

    #[test]
    fn machines_are_not_asked_to_boot_themselves() {
        let whole = AblationOptions {
            kinds: Vec::new(),
            rounds: 4,
            operations: 5,
            steps: vec![Vec::new(), vec![boot("a=1"), Toggle::Vhost]],
            orders: Vec::new(),
        };
        let part = part(&whole, vec![1]);
        assert_eq!(part.steps, [Vec::new(), vec![Toggle::Vhost]]);
        assert_eq!((part.rounds, part.orders), (1, vec![vec![1]]));
    }
}
