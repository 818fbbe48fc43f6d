//! Parameters that are drawn from a seed, and scripts that name them.

use std::collections::BTreeMap;

use serde::Deserialize;
use stats::Chance;

/// Where a parameter comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum Draw {
    /// A number of these and all between.
    Range {
        /// The least.
        from: u64,
        /// The greatest.
        to: u64,
    },
    /// One of these.
    Choose {
        /// Texts or numbers.
        choose: Vec<Choice>,
    },
}

/// Something to choose.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Choice {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

impl Draw {
    /// Whether there is nothing to draw.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Range { from, to } => from > to,
            Self::Choose { choose } => choose.is_empty(),
        }
    }

    fn drawn(&self, chance: &mut Chance) -> String {
        match self {
            Self::Range { from, to } => {
                let count = usize::try_from(to.saturating_sub(*from)).unwrap_or(usize::MAX - 1) + 1;
                (from + chance.below(count) as u64).to_string()
            }
            Self::Choose { choose } => match choose.get(chance.below(choose.len())) {
                Some(Choice::Number(number)) => number.to_string(),
                Some(Choice::Text(text)) => text.clone(),
                None => String::new(),
            },
        }
    }
}

/// Names of programs: a recording must not tell its cause by them. Workloads are called `{app}` in the guest and `{other}` in the
/// host.
pub(super) const PROGRAMS: [&str; 8] =
    ["app", "batch", "crawler", "indexer", "mailer", "render", "server", "worker"];

/// What a recording's parameters are, by name. They depend on the seed and on the recording's name alone, so that a recording
/// is the same whatever else is made.
pub(super) fn parameters(
    draws: &BTreeMap<String, Draw>,
    seed: u64,
    name: &str,
) -> BTreeMap<String, String> {
    let mut chance = Chance::of_part(seed, number_of(name));
    let mut programs = PROGRAMS;
    chance.shuffle(&mut programs);
    let called = ["app", "other"].into_iter().zip(programs);
    let mut parameters: BTreeMap<String, String> =
        called.map(|(word, program)| (word.to_owned(), program.to_owned())).collect();
    parameters.extend(draws.iter().map(|(word, draw)| (word.clone(), draw.drawn(&mut chance))));
    parameters
}

/// A number that differs between names (FNV-1a).
pub(super) fn number_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A script with its parameters, which it names in braces.
pub(super) fn filled(script: &str, parameters: &BTreeMap<String, String>) -> String {
    parameters.iter().fold(script.to_owned(), |script, (word, value)| {
        script.replace(&format!("{{{word}}}"), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws() -> BTreeMap<String, Draw> {
        let text = "ms = { from = 10, to = 12 }\nkind = { choose = ['cpuid', 7] }";
        toml::from_str(text).unwrap()
    }

    #[test]
    fn the_same_seed_and_name_draw_the_same() {
        assert_eq!(parameters(&draws(), 1, "a"), parameters(&draws(), 1, "a"));
        let drawn = |seed| {
            let parameters = parameters(&draws(), seed, "a");
            assert_ne!(parameters["app"], parameters["other"]);
            ["ms", "kind"].map(|word| parameters[word].clone())
        };
        let all: std::collections::BTreeSet<_> = (0..40).map(drawn).collect();
        assert_eq!(all.len(), 6, "three numbers with two words each: {all:?}");
        let by_name: std::collections::BTreeSet<_> =
            (0..40).map(|at| parameters(&draws(), 1, &at.to_string())).collect();
        assert!(by_name.len() > 1);
    }

    #[test]
    fn scripts_get_their_parameters() {
        let drawn = [("ms", "12"), ("kind", "cpuid")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let script = r#"plant {kind} ms={ms} "${QEMU}" {"execute":"{other}"}"#;
        let expected = r#"plant cpuid ms=12 "${QEMU}" {"execute":"{other}"}"#;
        assert_eq!(filled(script, &drawn.into()), expected);
    }
}
