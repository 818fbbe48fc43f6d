//! Replaces paths of recordings on pages: a page is sent to others, and must not reveal folders of this
//! machine.

use std::collections::HashMap;
use std::path::Path;

use report::html::PageReport;

/// Names recordings after their files everywhere in a page; equal names are numbered.
pub(crate) fn leave_out_folders(page: &mut PageReport) {
    let names = Names::new(page.exits.sources.iter().map(|source| source.path.as_str()));
    let exits = page.exits.sources.iter_mut().map(|source| &mut source.path);
    let nested =
        page.nested.iter_mut().flat_map(|report| &mut report.sources).map(|(path, _)| path);
    let calls =
        page.calls.iter_mut().flat_map(|report| &mut report.sources).map(|source| &mut source.path);
    let align = page.align.iter_mut().flat_map(|report| &mut report.sources);
    let paths = page.path.iter_mut().flat_map(|report| &mut report.sources);
    let boots = page.boot.iter_mut().flat_map(|report| &mut report.sources);
    let critical = page.critical.iter_mut().flat_map(|report| &mut report.sources);
    let irqs = page.irqs.iter_mut().flat_map(|report| &mut report.sources);
    let all = exits
        .chain(nested)
        .chain(calls)
        .chain(align)
        .chain(paths)
        .chain(boots)
        .chain(irqs)
        .chain(critical);
    all.chain(&mut page.cpu.sources).for_each(|path| *path = names.name(path));
    if let Some(diff) = &mut page.diff {
        diff.a.iter_mut().for_each(|path| *path = file_name(path));
        let now: Vec<String> =
            page.exits.sources.iter().map(|source| source.path.clone()).collect();
        diff.b = vec![now.join(", ")];
    }
}

/// Names by path.
struct Names(HashMap<String, String>);

impl Names {
    fn new<'p>(paths: impl Iterator<Item = &'p str>) -> Self {
        let mut seen: HashMap<String, usize> = HashMap::new();
        let mut names = HashMap::new();
        for path in paths {
            let name = file_name(path);
            let before = seen.entry(name.clone()).or_default();
            *before = before.saturating_add(1);
            let numbered = if *before == 1 { name } else { format!("{name} ({before})") };
            names.insert(path.to_owned(), numbered);
        }
        Self(names)
    }

    fn name(&self, path: &str) -> String {
        self.0.get(path).cloned().unwrap_or_else(|| file_name(path))
    }
}

fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_same_name_stay_apart() {
        let names = Names::new(["/home/a/trace.dat", "b/trace.dat", "guest.dat"].into_iter());
        let all = ["/home/a/trace.dat", "b/trace.dat", "guest.dat", "/x/other.dat"];
        let shown = all.map(|path| names.name(path));
        assert_eq!(shown, ["trace.dat", "trace.dat (2)", "guest.dat", "other.dat"]);
    }
}
