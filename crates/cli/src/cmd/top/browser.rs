//! Opens a page in the user's browser, if there is one.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts the browser, which outlives this program; `None` without a browser.
pub(super) fn open(page: &Path) -> Option<Child> {
    let words = command(page, |name| env::var_os(name).filter(|value| !value.is_empty()))?;
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().ok()
}

/// `$BROWSER` as xdg-open interprets it (its first command, with `%s` for the page); otherwise xdg-open,
/// if there is a display.
fn command(page: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<OsString>> {
    if let Some(browser) = variable("BROWSER") {
        let browser = browser.to_string_lossy();
        let words = browser.split(':').next().unwrap_or_default().split_whitespace();
        let mut words: Vec<OsString> = words.map(OsString::from).collect();
        if words.is_empty() {
            return None;
        }
        match words.iter().skip(1).position(|word| word == OsStr::new("%s")) {
            Some(at) => words[at + 1] = page.into(),
            None => words.push(page.into()),
        }
        return Some(words);
    }
    variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY"))?;
    Some(vec!["xdg-open".into(), page.into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(set: &[(&str, &str)]) -> Option<String> {
        let value = |name: &str| set.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into());
        let words = command(Path::new("/a b.html"), value)?;
        Some(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn a_browser_is_that_of_the_environment() {
        assert_eq!(words(&[]), None);
        assert_eq!(words(&[("DISPLAY", ":0")]).unwrap(), "xdg-open|/a b.html");
        assert_eq!(words(&[("WAYLAND_DISPLAY", "w")]).unwrap(), "xdg-open|/a b.html");
        assert_eq!(words(&[("BROWSER", "firefox:lynx")]).unwrap(), "firefox|/a b.html");
        assert_eq!(words(&[("BROWSER", "x %s --new")]).unwrap(), "x|/a b.html|--new");
        assert_eq!(words(&[("BROWSER", " "), ("DISPLAY", ":0")]), None);
    }
}
