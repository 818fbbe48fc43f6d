//! Glob patterns for names.

/// Whether `text` matches a pattern with `*` and `?`.
#[must_use]
pub fn glob(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.as_bytes(), text.as_bytes());
    // Where to resume after the last star if the following text does not match.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.split_first(), text.split_first()) {
            (Some((b'*', behind)), _) => {
                retry = Some((behind, text));
                pattern = behind;
            }
            (Some((first, behind)), Some((other, rest))) if *first == b'?' || first == other => {
                (pattern, text) = (behind, rest);
            }
            (None, None) => return true,
            _ => {
                let Some((behind, from)) = retry else { return false };
                let Some((_, rest)) = from.split_first() else { return false };
                retry = Some((behind, rest));
                (pattern, text) = (behind, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_in_a_shell() {
        for (pattern, text, matches) in [
            ("kvm_*", "kvm_exit", true),
            ("*", "", true),
            ("k?m", "kvm", true),
            ("*exit*inject", "kvm_nested_vmexit_inject", true),
            ("kvm", "kvm_exit", false),
            ("*a*b", "ab_a", false),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }
}
