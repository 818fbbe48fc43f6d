//! DuckDB reads the tables, and its sums equal the exits report.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{document, exported};

const PACKAGE: &str = "duckdb==2.0.0";

/// A Python with DuckDB, cached in the build folder; `None` if it can't be made.
pub(crate) fn duckdb_python() -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("duckdb-2.0.0");
    let python = folder.join("bin/python").to_str().unwrap().to_owned();
    let run = |program: &str, args: &[&str]| {
        Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
    };
    let has = || run(&python, &["-c", "import duckdb"]);
    let folder = folder.to_str().unwrap();
    let install = ["-m", "pip", "install", "--quiet", PACKAGE];
    if has() || (run("python3", &["-m", "venv", folder]) && run(&python, &install) && has()) {
        return Some(python);
    }
    testkit::skip!("pip can't install {PACKAGE}, which reads Parquet");
    None
}

/// Sums of a folder's tables by VM, level and reason, one JSON object per line.
const SCRIPT: &str = r#"
import duckdb, json, sys
sql = """
WITH e AS (SELECT vm, level, reason, waiting, COUNT(*) AS exits, COUNT(time_ns) AS paired,
  SUM(time_ns) AS time_ns, SUM(cost_ns) AS cost_ns, SUM(kernel_ns) AS kernel_ns, SUM(user_ns) AS user_ns,
  SUM(user_and_return_ns) AS back_ns, SUM(off_cpu_ns) AS off_cpu_ns, SUM(halt_poll_ns) AS poll_ns,
  SUM(not_split_ns) AS not_split_ns, SUM(CAST(poll_unknown AS INT)) AS unknown
  FROM read_parquet('{0}/exits.parquet') GROUP BY vm, level, reason, waiting),
r AS (SELECT vm, level, reason, SUM(exits) AS n, SUM(time_ns) AS t, SUM(cost_ns) AS c
  FROM read_parquet('{0}/exit_rollup.parquet') GROUP BY vm, level, reason),
h AS (SELECT vm, level, reason, SUM(n) AS values FROM read_parquet('{0}/exit_hist.parquet')
  WHERE metric = 'time' GROUP BY vm, level, reason)
SELECT e.*, r.n, r.t, r.c, h.values FROM e JOIN r USING (vm, level, reason) LEFT JOIN h USING (vm, level, reason)
"""
for folder in sys.argv[1:]:
    found = duckdb.sql(sql.format(folder))
    for row in found.fetchall():
        print(json.dumps([folder] + [int(v) if not isinstance(v, (str, bool, type(None))) else v for v in row]))
"#;

#[test]
fn duckdb_adds_up_to_what_exits_shows() {
    let Some(python) = duckdb_python() else { return };
    let folders = exported().iter().map(|(_, out)| out.as_os_str());
    let output = Command::new(python).args(["-c", SCRIPT]).args(folders).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let found: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut compared = 0;
    for (path, out) in exported() {
        let report = document(&["exits", "--format", "json", path]);
        let rows = report["rows"].as_array().unwrap();
        let exported_rows: Vec<&Value> =
            found.iter().filter(|row| row[0] == out.to_str().unwrap()).collect();
        assert_eq!(exported_rows.len(), rows.len(), "{path}");
        for row in rows {
            let is_same_group = |candidate: &&&Value| {
                candidate[1] == row["vm"]
                    && candidate[2] == row["level"]
                    && candidate[3] == row["reason"]
            };
            let exported_row = exported_rows
                .iter()
                .find(is_same_group)
                .unwrap_or_else(|| panic!("{path}: {row:#}"));
            let number = |at: usize| exported_row[at].as_u64().unwrap_or(0);
            let reported = |key: &str| row[key].as_u64().unwrap_or(0);
            assert_eq!((number(5), number(6)), (reported("count"), reported("paired")), "{path}");
            assert_eq!(number(7), reported("time_ns"), "{path}: {row:#}");
            // If some polling is unknown, the row's polling is in its kernel part.
            let polled = row["halt_poll_ns"].is_null() && number(15) > 0;
            let polled_ns = if polled { number(13) } else { 0 };
            if !row["cost_ns"].is_null() {
                assert_eq!(number(8) + polled_ns, reported("cost_ns"), "{path}: {row:#}");
            }
            if !row["kernel_ns"].is_null() {
                assert_eq!(number(9) + polled_ns, reported("kernel_ns"), "{path}: {row:#}");
            }
            let user = reported("user_ns") + reported("user_and_return_ns");
            assert_eq!(number(10) + number(11), user, "{path}: {row:#}");
            assert_eq!(number(12), reported("off_cpu_ns"), "{path}: {row:#}");
            assert_eq!(number(14), reported("not_split_ns"), "{path}: {row:#}");
            assert_eq!((number(16), number(17)), (number(5), number(7)), "{path}: {row:#}");
            assert_eq!((number(18), number(19)), (number(8), number(6)), "{path}: {row:#}");
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}
