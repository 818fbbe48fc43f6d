//! An HTML page: health, cost, VMs, and a link to the metrics.

use std::fmt::{self, Display, Write};

use crate::metrics::exposition::Value;
use crate::metrics::totals::Totals;

/// Max VMs to list, those with most exits first.
const MAX_LISTED: usize = 100;

/// The page, in HTML without scripts.
#[must_use]
pub fn status(totals: &Totals, version: &str) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>hyperscope serve</title>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <style>body{{font:16px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em}}\
         td,th{{padding:.1em 1.5em .1em 0;text-align:right}}td:first-child,th:first-child{{text-align:left}}\
         </style></head>\n<body><h1>hyperscope serve {}</h1>\n\
         <p><a href=\"/metrics\">Metrics</a> for Prometheus · <a href=\"/healthz\">health</a></p>\n<table>\n",
        Html(version)
    );
    own_figures(totals, &mut out);
    out += "</table>\n<h2>VMs</h2>\n";
    vms(totals, &mut out);
    out += "</body></html>\n";
    out
}

fn own_figures(totals: &Totals, out: &mut String) {
    let cost = totals.cost;
    let per_exit = cost.programs_ns.and_then(|took_ns| took_ns.checked_div(cost.exits));
    let per_exit = per_exit.map_or("not measured".to_owned(), |ns| format!("{ns} ns"));
    let lost = totals.lost;
    let series = format!("{} of {}", totals.series(), totals.most_series());
    let mut line = |name: &str, value: &dyn Display| {
        let _ = writeln!(out, "<tr><td>{name}</td><td>{value}</td></tr>");
    };
    line("Exits counted", &cost.exits);
    line("BPF time per exit", &per_exit);
    line("CPU time of this process", &format!("{} s", Value::Seconds(cost.process_ns)));
    line("Series", &series);
    line("Series beyond the limit", &totals.left_out);
    line("Exits lost", &lost.without_state);
    line("Waits lost", &lost.waits);
}

fn vms(totals: &Totals, out: &mut String) {
    if totals.vms.is_empty() {
        *out += "<p>No vCPU has exited yet.</p>\n";
        return;
    }
    let mut vms: Vec<_> = totals.vms.iter().collect();
    vms.sort_by_key(|(_, vm)| std::cmp::Reverse(vm.exits()));
    *out += "<table>\n<tr><th>VM</th><th>vCPUs</th><th>Exits</th></tr>\n";
    for (name, vm) in vms.iter().take(MAX_LISTED) {
        let (vcpus, exits) = (vm.vcpus, vm.exits());
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{vcpus}</td><td>{exits}</td></tr>",
            Html(name.as_str())
        );
    }
    *out += "</table>\n";
    if let Some(more) = vms.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        let _ = writeln!(out, "<p>And {more} more.</p>");
    }
}

/// Escapes text for HTML.
struct Html<'a>(&'a str);

impl Display for Html<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                char => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::totals::tests::{interval, row, vcpu};

    #[test]
    fn names_are_no_markup() {
        let mut totals = Totals::new(5_000);
        assert!(status(&totals, "1").contains("No vCPU has exited yet."));
        let evil = "<script>'\"&";
        totals.add(&interval(vec![row(evil, "hlt", true, 3)], vec![vcpu(evil, 0)]));
        let page = status(&totals, "1");
        assert!(
            page.contains("<tr><td>&lt;script&gt;&#39;&quot;&amp;</td><td>1</td><td>3</td></tr>")
        );
        assert!(!page.contains("<script"));
    }
}
