//! Samples of long lists of inputs: a test run uses a part, `make test-inputs` uses all.

use std::env;
use std::thread;

/// `1` selects all inputs.
const ALL: &str = "HYPERSCOPE_ALL_INPUTS";

/// Every `parts`th input, or all if `HYPERSCOPE_ALL_INPUTS=1`.
///
/// The offset depends on the name of the running test: tests with the same list use different
/// inputs, all tests together cover every input, and a test uses the same inputs in each run.
pub fn sampled<T>(inputs: impl IntoIterator<Item = T>, parts: usize) -> Vec<T> {
    let all = env::var_os(ALL).is_some_and(|value| value == "1");
    // The test harness names each thread after its test.
    let first = if all { 0 } else { sum(thread::current().name().unwrap_or_default()) % parts };
    let step = if all { 1 } else { parts };
    inputs.into_iter().skip(first).step_by(step).collect()
}

/// A hash that is the same in each build: FNV-1a.
fn sum(name: &str) -> usize {
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let sum = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    // The low bits depend on too few letters of the name.
    usize::try_from(sum >> 40).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_depend_on_the_tests_name() {
        let part = |name: &str| {
            let named = thread::Builder::new().name(name.to_owned());
            named.spawn(|| sampled(0..30, 3)).unwrap().join().unwrap()
        };
        let parts: Vec<Vec<i32>> = ["a::b", "c::d", "e", "f", "g", "h"].map(part).to_vec();
        let all = env::var_os(ALL).is_some();
        assert!(all || parts.iter().all(|part| part.len() == 10 && part[1] == part[0] + 3));
        assert!(all || parts.iter().any(|part| *part != parts[0]));
        assert_eq!(part("a::b"), parts[0]);
    }
}
