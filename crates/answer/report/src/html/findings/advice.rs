//! Advice at the findings that it explains; what explains none is a finding by itself.

use analyses::advice::{About, Advice};

use super::{Finding, Link, Weight};
use crate::advice::saving;

/// Puts each piece of advice on a recording where it belongs.
pub(super) fn attach<'a>(
    source: &str,
    advice: impl Iterator<Item = &'a Advice>,
    findings: &mut Vec<Finding>,
) {
    for one in advice {
        let place = findings.iter().position(|finding| explains(one, finding));
        let place = place.unwrap_or_else(|| {
            findings.push(by_itself(one));
            findings.len() - 1
        });
        if let Some(finding) = findings.get_mut(place) {
            finding.advice.push((source.to_owned(), one.clone()));
        }
    }
}

fn explains(advice: &Advice, finding: &Finding) -> bool {
    let vm = finding.link.as_ref().and_then(|link| link.vm.as_deref());
    vm == Some(advice.vm.as_str()) && finding.about.as_ref() == Some(&advice.about)
}

/// What is said where no other finding speaks of what the advice is about.
fn by_itself(advice: &Advice) -> Finding {
    let values = [advice.title.as_str(), &advice.vm, &saving(advice), advice.saving_of.name()];
    let found = Finding::new(Weight::Info, "*{}*, in {}: {} of {}.", &values);
    let link =
        |section, level, reason| Link { section, vm: Some(advice.vm.clone()), level, reason };
    let link = match &advice.about {
        About::Reason { level, reason } => link("exits", Some(*level), Some(reason.clone())),
        About::RunQueue | About::HaltPolling => link("timeline", None, None),
        About::Nested => link("nested", None, None),
    };
    found.to(link).about(advice.about.clone())
}
