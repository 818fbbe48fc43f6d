//! `hyperscope fleet` finds a known difference in a simulated fleet, with the day on which it began, and none where
//! there is none.

use std::path::Path;

use serde_json::Value;

use crate::pages::element;
use crate::schemas::{check, closed};
use crate::tool::{Run, hyperscope, output_of};

const RECORDING: &str = "fixtures/arm64/D.dat";
const BEFORE: [&str; 4] = ["--a", "date < '2026-11-04'", "--b", "date >= '2026-11-04'"];

fn simulate(at: &Path, args: &[&str]) {
    let lake = at.to_str().unwrap();
    let run =
        hyperscope(&[&["fleet", "simulate", lake, "--slices", "1", RECORDING], args].concat());
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
}

fn diff(at: &Path, args: &[&str]) -> Run {
    hyperscope(&[&["fleet", "diff", at.to_str().unwrap()], args].concat())
}

fn document(at: &Path, args: &[&str]) -> Value {
    let run = diff(at, &[args, &["--format", "json"]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let document = serde_json::from_str(&run.out).unwrap();
    check(&closed("fleet_diff"), &document, "fleet diff");
    document
}

fn row<'d>(document: &'d Value, reason: &str, metric: &str, stratum: Option<&str>) -> &'d Value {
    let rows = document["rows"].as_array().unwrap();
    let is_match = |row: &&Value| {
        row["reason"] == reason && row["metric"] == metric && row["stratum"].as_str() == stratum
    };
    rows.iter().find(is_match).unwrap()
}

#[test]
fn a_reason_that_gets_dearer_on_one_cpu_model_is_found_with_its_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    simulate(
        &at,
        &["--hosts", "24", "--days", "6", "--effect", "IRQ:cost=+60%,model=1,day=3", "--seed", "5"],
    );
    let lake = at.to_str().unwrap();
    let sessions: Value =
        serde_json::from_str(&output_of(&["lake", "list", "--format", "json", lake])).unwrap();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 24 * 6);
    let verified = hyperscope(&["lake", "verify", lake]);
    assert_eq!(verified.code, 0, "{}", verified.err);

    let found = document(&at, &BEFORE);
    assert_eq!((&found["a"]["hosts"], &found["paired"]), (&24.into(), &24.into()));
    let changed = row(&found, "IRQ", "mean_cost_ns", Some("simulated-1"));
    let ratio = changed["ratio"].as_f64().unwrap();
    assert!((1.4..1.85).contains(&ratio) && changed["finding"] == true, "{changed}");
    assert!(
        changed["ci_low"].as_f64().unwrap() < 1.6 && changed["ci_high"].as_f64().unwrap() > 1.2
    );
    let total = changed["total_ratio"].as_f64().unwrap();
    assert!((1.35..1.9).contains(&total), "{changed}");
    assert_eq!(row(&found, "IRQ", "mean_cost_ns", Some("simulated-0"))["significant"], false);
    let odd: Vec<Value> =
        (1..24).step_by(2).map(|at| format!("simulated-{at:03}").into()).collect();
    assert_eq!(changed["carried_by"], Value::from(odd.clone()));
    let all = row(&found, "IRQ", "mean_cost_ns", None);
    assert!(all["finding"] == true && all["carried_by"] == Value::from(odd), "{all}");
    assert_eq!(all["hosts"].as_array().unwrap().len(), 24);
    // Unchanged numbers do not differ.
    let rows = found["rows"].as_array().unwrap();
    let others = rows.iter().filter(|row| row["finding"] == true && !row["reason"].is_null());
    assert!(others.into_iter().all(|row| row["reason"] == "IRQ"));

    let table = diff(&at, &BEFORE).out;
    assert!(
        table.contains("12 of 24 hosts, all of cpu_model simulated-1: simulated-001, "),
        "{table}"
    );
    let run = diff(&at, &[&BEFORE[..], &["--fail-if", "IRQ:mean_cost > +5%"]].concat());
    assert!(run.code == 3 && run.err.contains("carried by 12 hosts"), "{}", run.err);
    let run = diff(&at, &[&BEFORE[..], &["--fail-if", "DABT_LOW:mean_cost > +5%"]].concat());
    assert_eq!(run.code, 0, "{}", run.err);

    // Hosts of the other model show the difference between days; compaction changes nothing.
    let rollout = ["--control", "cpu_model = 'simulated-0'", "--strata", "arch"];
    let run = hyperscope(&["lake", "compact", lake, "--before", "2026-11-05"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let staged = document(&at, &[&BEFORE[..], &rollout].concat());
    let changed = row(&staged, "IRQ", "mean_cost_ns", None);
    assert_eq!((&changed["design"], &staged["controls"]), (&"differences".into(), &12.into()));
    assert!((1.35..1.9).contains(&changed["ratio"].as_f64().unwrap()), "{changed}");
    assert_eq!(changed["carried_by"].as_array().unwrap().len(), 12);
}

#[test]
fn where_nothing_differs_nothing_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    simulate(&at, &["--hosts", "20", "--days", "4", "--seed", "3"]);
    let days = ["--a", "date < '2026-11-03'", "--b", "date >= '2026-11-03'"];
    let found = document(&at, &days);
    let rows = found["rows"].as_array().unwrap();
    assert!(rows.len() > 30 && rows.iter().all(|row| row["finding"] == false));
    assert!(diff(&at, &days).out.contains("differs.\n"));
    // Different hosts on the sides, with half of each model.
    let hosts = ["--a", "host_id <= 'simulated-009'", "--b", "host_id > 'simulated-009'"];
    let found = document(&at, &hosts);
    let compared = row(&found, "IRQ", "mean_ns", None);
    assert_eq!((&compared["design"], &compared["paired"]), (&"welch".into(), &0.into()));
    assert!(found["rows"].as_array().unwrap().iter().all(|row| row["finding"] == false));
    let csv = diff(&at, &[&hosts[..], &["--format", "csv"]].concat()).out;
    assert_eq!(csv.lines().count(), found["rows"].as_array().unwrap().len() + 1);
}

#[test]
fn wrong_conditions_are_usage_errors_and_empty_sides_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    simulate(&at, &["--hosts", "3", "--days", "2"]);
    for (args, code, words) in [
        (&["--a", "day = 1", "--b", "cpus = 1"][..], 2, "sessions have no column day"),
        (&["--a", "cpus = ", "--b", "cpus = 1"], 2, "a number, or a text"),
        (&["--a", "cpus = 1"], 2, "--b"),
        (&["--a", "cpus = 1", "--b", "cpus = 'x'"], 1, "no session of a known host"),
        (
            &["--a", "cpus > 0", "--b", "cpus < 9", "--strata", "rack"],
            2,
            "sessions have no column rack",
        ),
        (&[&BEFORE[..], &["--fail-if", "p50 > 1%"]].concat(), 2, "unknown metric"),
        (&[&BEFORE[..], &["--metric", "p50"]].concat(), 2, "unknown metric p50"),
    ] {
        let run = diff(&at, args);
        assert!(run.code == code && run.err.contains(words), "{args:?}: {} {}", run.code, run.err);
    }
    let run = diff(&folder.path().join("none"), &BEFORE);
    assert!(run.code == 1 && run.err.contains("is not a lake"), "{}", run.err);
    for effect in ["npf", "npf:cost=3"] {
        let run = hyperscope(&["fleet", "simulate", "target/none", "--effect", effect, RECORDING]);
        assert_eq!(run.code, 2, "{}", run.err);
    }
}

fn since(at: &Path, args: &[&str]) -> Run {
    hyperscope(&[&["fleet", "since", at.to_str().unwrap()], args].concat())
}

fn since_document(at: &Path, args: &[&str]) -> Value {
    let run = since(at, &[args, &["--format", "json"]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let document = serde_json::from_str(&run.out).unwrap();
    check(&closed("fleet_since"), &document, "fleet since");
    document
}

/// Two reasons become more expensive, one on a CPU model and one on all hosts, on different days.
#[test]
fn days_on_which_reasons_got_dearer_are_found_with_their_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    let effects =
        ["--effect", "IRQ:cost=+60%,model=1,day=7", "--effect", "DABT_LOW:cost=+50%,day=4"];
    simulate(&at, &[&["--hosts", "24", "--days", "12", "--seed", "7"], &effects[..]].concat());
    let found = since_document(&at, &[]);
    assert_eq!((&found["hosts"], &found["sessions"]), (&24.into(), &288.into()));
    assert_eq!(
        (&found["from_day"], &found["to_day"]),
        (&"2026-11-01".into(), &"2026-11-12".into())
    );
    let changes = found["changes"].as_array().unwrap();
    let change_of = |reason: &str, stratum: Option<&str>| {
        let is_match = |change: &&Value| {
            change["reason"] == reason
                && change["metric"] == "mean_cost_ns"
                && change["stratum"].as_str() == stratum
        };
        changes.iter().find(is_match)
    };
    let irq = change_of("IRQ", Some("simulated-1")).unwrap();
    let (low, high) = (irq["ci_low"].as_f64().unwrap(), irq["ci_high"].as_f64().unwrap());
    assert!(low < 1.6 && high > 1.6 && low > 1.3 && irq["finding"] == true, "{irq}");
    assert_eq!((&irq["day"], &irq["last_before"]), (&"2026-11-08".into(), &"2026-11-07".into()));
    let odd: Vec<Value> =
        (1..24).step_by(2).map(|at| format!("simulated-{at:03}").into()).collect();
    assert_eq!((&irq["carried_by"], &irq["hosts_of_all"]), (&Value::from(odd), &24.into()));
    let shared = serde_json::json!([{ "name": "cpu_model", "value": "simulated-1", "carriers": 12, "others": 0 }]);
    assert_eq!(irq["shared"], shared);
    assert!(change_of("IRQ", Some("simulated-0")).is_none());
    let all = change_of("DABT_LOW", None).unwrap();
    assert_eq!((&all["day"], &all["hosts_compared"]), (&"2026-11-05".into(), &24.into()));
    let ratio = all["ratio"].as_f64().unwrap();
    assert!((1.4..1.6).contains(&ratio) && all["carried_by"].as_array().unwrap().len() == 24);
    // Nothing else changed, except the sum of all exits, with these two.
    let reasons = [Value::Null, "IRQ".into(), "DABT_LOW".into()];
    assert!(changes.iter().all(|change| reasons.contains(&change["reason"])), "{changes:#?}");

    let text = since(&at, &[]).out;
    let line = "on 12 of 24 hosts, all of cpu_model simulated-1: simulated-001, simulated-003, ";
    assert!(text.contains("2026-11-08: IRQ of level 1 (") && text.contains(line), "{text}");
    let csv = since(&at, &["--format", "csv"]).out;
    assert_eq!(csv.lines().count(), changes.len() + 1);
    let run = since(&at, &["--fail-if", "IRQ:mean_cost > +5%"]);
    assert!(run.code == 3 && run.err.contains("on simulated-1 since 2026-11-08, "), "{}", run.err);
    let run = since(&at, &["--fail-if", "WFx:mean_cost > +5%", "--fail-if", "IRQ:mean_cost < -5%"]);
    assert_eq!(run.code, 0, "{}", run.err);

    // Only days before the change, in steps of two days, and after compaction.
    let run = hyperscope(&["lake", "compact", at.to_str().unwrap(), "--before", "2026-11-10"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let before = since_document(&at, &["--where", "date < '2026-11-05'"]);
    assert!(before["changes"].as_array().unwrap().is_empty() && before["steps"] == 4, "{before}");
    let compacted = since_document(&at, &[]);
    assert_eq!(compacted["changes"], found["changes"]);
    let by_two = since_document(&at, &["--step", "2", "--where", "date >= '2026-11-02'"]);
    assert_eq!((&by_two["steps"], &by_two["left_out"]["step_incomplete"]), (&5.into(), &24.into()));
    let by_two = since_document(&at, &["--step", "2", "--metric", "mean_cost"]);
    let changes = by_two["changes"].as_array().unwrap();
    let all =
        changes.iter().find(|change| change["reason"] == "DABT_LOW" && change["stratum"].is_null());
    assert_eq!((&all.unwrap()["day"], &by_two["steps"]), (&"2026-11-05".into(), &6.into()));
}

#[test]
fn where_nothing_changes_no_day_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    simulate(&at, &["--hosts", "12", "--days", "8", "--seed", "4"]);
    let found = since_document(&at, &[]);
    assert!(found["changes"].as_array().unwrap().is_empty() && found["series"].as_u64() > Some(30));
    let text = since(&at, &[]).out;
    assert!(
        text.starts_with("None of ") && text.contains("numbers over time changes.\n"),
        "{text}"
    );
    for (args, code, words) in [
        (&["--where", "day = 1"][..], 2, "sessions have no column day"),
        (&["--strata", "rack"], 2, "sessions have no column rack"),
        (&["--strata", "cpu_model,rack"], 2, "sessions have no column rack"),
        (&["--step", "0"], 2, "--step"),
        (&["--metric", "p50"], 2, "unknown metric p50"),
        (&["--fail-if", "p50 > 1%"], 2, "unknown metric"),
        (&["--fail-if", "NONE:mean > 1%"], 1, "no row has the numbers"),
        (&["--where", "cpus < 0"], 1, "no usable session has a known host and day"),
        (&["--where", "date < '2026-11-04'"], 1, "12 hosts in 3 days: "),
        (&["--step", "3"], 1, "12 hosts in 2 steps of 3 days: "),
    ] {
        let run = since(&at, args);
        assert!(run.code == code && run.err.contains(words), "{args:?}: {} {}", run.code, run.err);
    }
}

/// A page and its data; `args` are those of `fleet diff`.
fn page(at: &Path, args: &[&str]) -> (String, Value) {
    let file = at.with_extension("html");
    let run = diff(at, &[args, &["-o", file.to_str().unwrap()]].concat());
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{}", run.err);
    let text = std::fs::read_to_string(file).unwrap();
    let document = serde_json::from_str(&element(&text, "hyperscope-fleet")).unwrap();
    check(&closed("fleet_page"), &document, "page of a fleet");
    (text, document)
}

/// The entries `name` of the document for a metric of a reason.
fn of_reason<'d>(document: &'d Value, name: &str, reason: &str, metric: &str) -> Vec<&'d Value> {
    let is_match = |entry: &&Value| entry["key"]["reason"] == reason && entry["metric"] == metric;
    document[name].as_array().unwrap().iter().filter(is_match).collect()
}

#[test]
fn a_page_has_what_hosts_have_who_stands_apart_and_since_when() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("days");
    let effects =
        ["--effect", "IRQ:cost=+60%,model=1,day=5", "--effect", "DABT_LOW:cost=+400%,host=6,day=5"];
    simulate(&at, &[&["--hosts", "24", "--days", "10", "--seed", "5"], &effects[..]].concat());
    let sides = ["--a", "date < '2026-11-06'", "--b", "date >= '2026-11-06'"];
    let found = document(&at, &sides);
    let (_, page) = page(&at, &sides);
    assert_eq!((&page["title"], &page["hosts_left_out"]), (&"days".into(), &0.into()));

    // Numbers equal those of the comparison, host by host.
    let row = row(&found, "IRQ", "mean_cost_ns", None);
    let [numbers] = of_reason(&page, "grid", "IRQ", "mean_cost_ns")[..] else { panic!("{page}") };
    let hosts = page["hosts"].as_array().unwrap();
    for (place, known) in row["hosts"].as_array().unwrap().iter().enumerate() {
        assert_eq!(hosts[place]["host"], known["host"]);
        for side in ["a", "b"] {
            let (in_page, in_diff) = (numbers[side][place].as_f64(), known[side].as_f64());
            assert!((in_page.unwrap() / in_diff.unwrap() - 1.0).abs() < 5e-5, "{side} {known}");
        }
    }
    assert_eq!(hosts.len(), 24);
    let strip = |mut report: Value, list: &str| {
        let rows = report[list].as_array_mut().unwrap();
        rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("hosts")));
        report
    };
    assert!(page["diff"] == strip(found, "rows"), "{}", page["diff"]);
    let either = "(date < '2026-11-06') OR (date >= '2026-11-06')";
    let since = since_document(&at, &["--where", either]);
    assert!(page["since"] == strip(since, "changes"), "{}", page["since"]);

    // The change of a kind is a finding about its hosts; the host with a change of its own is an outlier.
    let rows = page["diff"]["rows"].as_array().unwrap();
    let first = |places: &Value| usize::try_from(places[0].as_u64().unwrap()).unwrap();
    let irq = page["findings"].as_array().unwrap().iter().map(|finding| &rows[first(finding)]);
    assert!(
        irq.clone()
            .any(|row| row["reason"] == "IRQ" && row["carried_by"].as_array().unwrap().len() == 12)
    );
    let apart = of_reason(&page, "outliers", "DABT_LOW", "mean_cost_ns");
    let change = apart.iter().find(|outlier| outlier["of"] == "change").unwrap();
    assert_eq!((&change["host"], &change["peers"]), (&"simulated-006".into(), &12.into()));
    assert!((3.5..7.0).contains(&change["times"].as_f64().unwrap()), "{change}");
    assert!(of_reason(&page, "outliers", "IRQ", "mean_cost_ns").is_empty());

    // Days, and paths of recordings.
    assert_eq!(page["dates"].as_array().unwrap().len(), 10);
    let curves = of_reason(&page, "curves", "IRQ", "mean_cost_ns");
    assert_eq!(curves.len(), 3, "all hosts, and either kind");
    let changes = page["since"]["changes"].as_array().unwrap();
    let since =
        page["since_findings"].as_array().unwrap().iter().map(|finding| &changes[first(finding)]);
    assert!(since.clone().any(|change| change["reason"] == "IRQ" && change["day"] == "2026-11-06"));
    let source = format!("simulated: {RECORDING}");
    assert_eq!(hosts[3]["a"][0]["source_uri"], source.as_str());
    assert_eq!(
        (&hosts[3]["b"][0]["date"], &hosts[3]["sessions"]),
        (&"2026-11-10".into(), &serde_json::json!([5, 5]))
    );
}

/// Names come from recordings, and are always data in a page. Other formats are refused under a page's file name.
#[test]
fn names_in_a_page_of_a_fleet_stay_data() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lake");
    let lake = at.to_str().unwrap();
    let evil = "</script><script>alert(1)</script>&<!--";
    // A recording is one session of a host, so another day needs another recording.
    let days = [("1795305600", RECORDING), ("1795392000", "fixtures/arm64/A.dat")];
    for host in ["one", evil] {
        for (start, file) in days {
            let options = ["lake", "add", lake, "--host", host, "--begun", start, file];
            let run = hyperscope(&options);
            assert_eq!(run.code, 0, "{}", run.err);
        }
    }
    let sides = ["--a", "date < '2026-11-23'", "--b", "date >= '2026-11-23'"];
    let (text, page) = page(&at, &sides);
    let hosts = page["hosts"].as_array().unwrap();
    assert!(hosts.len() == 2 && hosts.iter().any(|host| host["host"] == evil), "{hosts:?}");
    assert!(hosts.iter().all(|host| host["a"][0]["source_uri"] == RECORDING), "{hosts:?}");
    assert!(!element(&text, "hyperscope-fleet").contains(['<', '>', '&']));
    let file = folder.path().join("json.html");
    let run =
        diff(&at, &[&sides[..], &["--format", "json", "-o", file.to_str().unwrap()]].concat());
    // A browser would execute names in a text with this file name.
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(!file.exists());
}
