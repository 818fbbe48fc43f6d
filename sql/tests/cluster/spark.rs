//! Spark: a master and two workers of one core each.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Instant;

use serde_json::Value;

use crate::alike::{assert_alike, command, compare, output_of, queries, sources};
use crate::{SUMS, folder, many_rows, refusal, tables_are_the_same, variable};

fn engine() -> String {
    format!("spark={}", variable("HYPERSCOPE_SPARK_MASTER"))
}

#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn answers_alike() {
    let folder = folder("spark-alike");
    let sources = sources(&folder);
    compare(&engine(), &sources[..1], &queries());
    // Rows that all count, of a folder of tables and of a recording.
    compare(&engine(), &sources[1..], &queries()[..2]);
    tables_are_the_same(&engine(), &sources[0]);
}

#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn says_what_is_wrong_and_where() {
    let folder = folder("spark-wrong");
    let lake = &sources(&folder)[0];
    for (query, marked) in [
        ("SELECT reson\nFROM exits", "\n  SELECT reson\n         ^"),
        ("SELECT reason,\n vm FROM exitz", "\n   vm FROM exitz\n           ^"),
        ("SELECT reason FROM exits WHERE\n AND 1", "\n   AND 1\n"),
    ] {
        let stderr = refusal(&engine(), query, lake);
        assert!(stderr.contains(marked), "{stderr}");
        assert!(stderr.lines().count() < 6, "{stderr}");
    }
}

/// Of a lake in a store, by jars and keys of Spark's own settings.
#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn answers_alike_of_a_lake_in_a_store() {
    let Ok(at) = std::env::var("HYPERSCOPE_STORE") else { return };
    let folder = Path::new(&variable("HYPERSCOPE_STORE_FOLDER")).join("spark");
    fs::create_dir_all(&folder).unwrap();
    let (here, there) = (&sources(&folder)[0], "s3://lakes/spark/lake");
    let stderr = refusal(&engine(), "SELECT COUNT(*) AS n FROM exits", there);
    eprint!("{stderr}");
    assert!(stderr.contains("Spark has no hadoop-aws"), "{stderr}");
    let settings = crate::folder("spark-of-a-store");
    // Files that were put into the store's folder have no ETag, which Hadoop otherwise takes to see changes by.
    let text = format!(
        "spark.jars {}\nspark.hadoop.fs.s3a.endpoint {at}\nspark.hadoop.fs.s3a.path.style.access true\n\
         spark.hadoop.fs.s3a.endpoint.region us-east-1\nspark.hadoop.fs.s3a.access.key ann\n\
         spark.hadoop.fs.s3a.secret.key of-the-store\nspark.hadoop.fs.s3a.input.stream.type classic\n\
         spark.hadoop.fs.s3a.change.detection.version.required false\n",
        variable("HYPERSCOPE_SPARK_JARS").trim_end_matches(',')
    );
    fs::write(settings.join("spark-defaults.conf"), text).unwrap();
    let questions = queries();
    let some = questions.iter().skip(3).take(5).map(String::as_str);
    // A session of Spark for each: questions, what counts by sessions, and a table that has no file there.
    for query in some.chain(["SELECT COUNT(*) AS n, MAX(ts_ns) AS last_ns FROM exit_details"]) {
        let expected = output_of(&["sql", "--format", "json", query, here]);
        let args = ["sql", "--format", "json", query, there, "--engine", &engine()];
        let done = command(&args).env("SPARK_CONF_DIR", &settings).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let found = String::from_utf8(done.stdout).unwrap();
        let rows = assert_alike(&expected, &found, query.starts_with('@'), query);
        eprintln!("{rows} rows alike by spark of {there}: {query}");
    }
    let query = "SELECT COUNT(*) AS n FROM exits";
    let elsewhere = ["sql", query, "s3://lakes/spark/no-lake", "--engine", &engine()];
    let done = command(&elsewhere).env("SPARK_CONF_DIR", &settings).output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("s3a://lakes/spark/no-lake/v1/sessions/"), "{stderr}");
}

/// The same question of 209 million rows, with one executor and with two, which share the work.
#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn two_executors_share_the_work() {
    let (rows, expected) = many_rows();
    let [single, two] = [1, 2].map(|cores| run(cores, &rows, &expected));
    for (tasks, cores) in [(&single.tasks, 1), (&two.tasks, 2)] {
        assert_eq!(tasks.len(), cores, "executors: {tasks:?}");
    }
    let all: u64 = two.tasks.values().sum();
    assert!(all >= 100, "{:?}", two.tasks);
    for (executor, tasks) in &two.tasks {
        assert!(tasks * 100 >= all * 40, "executor {executor} ran {tasks} of {all} tasks");
    }
    let longest = |run: &Run| run.cpu_s.values().copied().fold(0.0, f64::max);
    eprintln!(
        "Spark: two executors take {:.2} of the time of one; the busier of them {:.2} of its CPU time",
        two.job_s / single.job_s,
        longest(&two) / longest(&single)
    );
}

struct Run {
    /// By executor.
    tasks: BTreeMap<String, u64>,
    /// CPU time of these tasks, by executor.
    cpu_s: BTreeMap<String, f64>,
    /// From the first job's begin to the last one's end.
    job_s: f64,
}

/// What the answer took with that number of executors, of one core each.
fn run(cores: usize, rows: &str, expected: &str) -> Run {
    let folder = folder(&format!("spark-{cores}"));
    let log = folder.join("events");
    fs::create_dir_all(&log).unwrap();
    let settings = format!(
        "spark.cores.max {cores}\nspark.executor.cores 1\nspark.executor.memory 800m\n\
         spark.sql.shuffle.partitions 4\nspark.sql.files.maxPartitionBytes 8m\nspark.locality.wait 0\n\
         spark.scheduler.minRegisteredResourcesRatio 1\nspark.eventLog.enabled true\n\
         spark.eventLog.rolling.enabled false\nspark.eventLog.compress false\nspark.eventLog.dir file:{}\n",
        log.display()
    );
    fs::write(folder.join("spark-defaults.conf"), settings).unwrap();
    let start = Instant::now();
    let args = ["sql", "--format", "json", SUMS, rows, "--engine", &engine()];
    let Output { status, stdout, stderr } =
        command(&args).env("SPARK_CONF_DIR", &folder).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let all_s = start.elapsed().as_secs_f64();
    assert_alike(expected, &String::from_utf8(stdout).unwrap(), false, "sums");
    let run = Run::from_log(&log);
    eprintln!(
        "Spark, cores {cores}: {:.1} s of jobs, {all_s:.1} s in all; tasks by executor: {:?}, CPU time in s: {:.1?}",
        run.job_s, run.tasks, run.cpu_s
    );
    run
}

impl Run {
    /// What Spark itself wrote down of its last application.
    fn from_log(log: &Path) -> Self {
        let mut files: Vec<_> =
            fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let text = fs::read_to_string(files.last().unwrap()).unwrap();
        let (mut tasks, mut cpu_s) = (BTreeMap::new(), BTreeMap::new());
        let (mut from, mut to) = (i64::MAX, 0);
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            match event["Event"].as_str() {
                Some("SparkListenerTaskEnd") => {
                    let info = &event["Task Info"];
                    assert_eq!(info["Failed"], false, "{line}");
                    let executor = info["Executor ID"].as_str().unwrap();
                    *tasks.entry(executor.to_owned()).or_default() += 1;
                    let cpu_ns = event["Task Metrics"]["Executor CPU Time"].as_f64().unwrap();
                    *cpu_s.entry(executor.to_owned()).or_default() += cpu_ns / 1e9;
                }
                Some("SparkListenerJobStart") => {
                    from = from.min(event["Submission Time"].as_i64().unwrap())
                }
                Some("SparkListenerJobEnd") => {
                    to = to.max(event["Completion Time"].as_i64().unwrap())
                }
                _ => {}
            }
        }
        assert!(from < to, "no job");
        Self { tasks, cpu_s, job_s: (to - from) as f64 / 1000.0 }
    }
}
