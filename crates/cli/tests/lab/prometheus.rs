//! Prometheus and its Alertmanager with `hyperscope serve` and a flight recorder, on a real KVM host.
//!
//! They run on this machine, and reach level 1 through the lab: each request is a command there. They receive the
//! server's own bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::recorded::json;
use crate::tool::{TestLab, can_run_all};

/// Ports of `serve` and the flight recorder in level 1.
const METRICS: u16 = 9797;
const ALERTS: u16 = 9798;

/// In level 1, while the guest's VMM is stopped: all three begin to count.
const BEGIN: &str = "
    kill -STOP $(pidof qemu-system-x86_64)
    sleep 0.5
    hyperscope serve >/tmp/serve.said 2>&1 &
    mkfifo /tmp/end
    hyperscope record --clock mono -o /tmp/r -- cat /tmp/end >/tmp/record.said 2>&1 &
    hyperscope record --flight 120s --size 64M --alerts 127.0.0.1:9798 -o /tmp/f >/tmp/flight.said 2>&1 &
    until grep -q 'metrics are at' /tmp/serve.said && pidof cat >/dev/null && grep -q 'keeping the newest' /tmp/flight.said; do
        sleep 0.2
    done
    kill -CONT $(pidof qemu-system-x86_64)";

/// Ends the recording, and with it the compared time.
const END: &str = "
    kill -STOP $(pidof qemu-system-x86_64)
    sleep 0.5
    echo > /tmp/end
    until [ -e /tmp/r/session.json ] && [ -e /tmp/r/host.dat ]; do sleep 0.2; done";

/// Timeout for everything that waits for Prometheus.
const PATIENCE: Duration = Duration::from_secs(120);
/// The number of exits known to Prometheus.
const CPUID: &str = "sum(hyperscope_exits_total{vm=\"l2\",reason=\"cpuid\"})";
/// If set, scraping continues for this number of seconds after the guest's work.
const LONGER: &str = "HYPERSCOPE_SCRAPE_SECONDS";
/// The accounting has four buckets per power of two.
const BUCKET: f64 = 1.189_207_115_002_721;

#[test]
fn prometheus_reads_what_a_recording_has_and_its_alert_makes_a_session() {
    if !can_run_all() {
        return;
    }
    for program in ["prometheus", "prometheus-alertmanager"] {
        if Command::new(program).arg("--version").output().is_err() {
            testkit::skip!("{program} is not installed");
            return;
        }
    }
    let lab = Arc::new(TestLab::new("prometheus"));
    lab.run(&["up", "--levels", "2"]).done();
    lab.put_program(1);
    lab.shell(1, BEGIN).done();
    let folder = tempfile::tempdir().unwrap();
    let alertmanager = Alertmanager::start(folder.path(), relay(&lab, ALERTS));
    let prometheus = Prometheus::start(folder.path(), relay(&lab, METRICS), alertmanager.at);

    lab.shell(2, "hyperscope-labguest exits hypercall=70 cpuid=20").done();
    // Prometheus only counts increases between two scrapes.
    wait_for(|| prometheus.query(CPUID).filter(|count| *count >= 20.0));
    lab.shell(2, "hyperscope-labguest exits cpuid=1500").done();
    let session = wait_for(|| {
        let found = lab.shell(1, "ls -d /tmp/f/*.hscope 2>/dev/null || true").done().stdout;
        found.lines().next().map(str::to_owned)
    });
    let longer = std::env::var(LONGER).map_or(0, |seconds| seconds.parse().unwrap());
    thread::sleep(Duration::from_secs(longer));
    lab.shell(1, END).done();

    get(&lab, "/tmp/r/host.dat", &folder.path().join("host.dat"));
    let recorded = json(&[
        "exits",
        "--format",
        "json",
        "--by",
        "vm",
        folder.path().join("host.dat").to_str().unwrap(),
    ]);
    agrees(&prometheus, &recorded);
    draws_the_dashboard(&prometheus);
    let scrapes = prometheus.number("count_over_time(up{job=\"hyperscope\"}[1d])");
    let min = prometheus.number("min_over_time(up{job=\"hyperscope\"}[1d])");
    assert_eq!(min, 1.0, "of {scrapes} scrapes one failed");
    has_what_was_before(&lab, &session, folder.path());
    eprintln!("{scrapes} scrapes, none failed");
}

/// Prometheus' numbers and quantiles of exits equal those of the recording.
fn agrees(prometheus: &Prometheus, recorded: &Value) {
    let rows = recorded["rows"].as_array().unwrap();
    for row in rows.iter().filter(|row| row["vm"] == "l2") {
        let series = format!(
            "hyperscope_exit_duration_seconds{{vm=\"l2\",waiting=\"{}\"}}",
            row["waiting"].as_bool().unwrap()
        );
        let paired = row["paired"].as_f64().unwrap();
        // The last interval is scraped after the guest was stopped.
        wait_for(|| {
            (prometheus.number(&format!("histogram_count({series})")) == paired).then_some(())
        });
        let sum_ns = prometheus.number(&format!("histogram_sum({series})")) * 1e9;
        let recorded_ns = row["time_ns"].as_f64().unwrap();
        eprintln!("sum {recorded_ns}, by PromQL {sum_ns:.0}");
        // The host may be preempted between the two readings of the clock.
        assert!((sum_ns / recorded_ns - 1.0).abs() < 0.2, "{sum_ns} {recorded_ns}");
        for (quantile, name) in [(0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")] {
            let found_ns =
                prometheus.number(&format!("histogram_quantile({quantile}, {series})")) * 1e9;
            let exact_ns = row[name].as_f64().unwrap();
            let apart = (found_ns / exact_ns).max(exact_ns / found_ns);
            eprintln!("{name} {exact_ns}, by PromQL {found_ns:.0}");
            // The width of a bucket, and the slightly later reading of the clock.
            assert!(apart < BUCKET * 1.05, "{series} {name}: {found_ns} {exact_ns}");
        }
    }
}

/// Panels of the dashboard without data here: no series exceeds its limit.
const EMPTY_PANELS: [&str; 1] = ["Exits not counted"];

/// Each panel of the dashboard has data.
fn draws_the_dashboard(prometheus: &Prometheus) {
    let text = include_str!("../../../../packaging/grafana/hyperscope.json");
    let dashboard: Value = serde_json::from_str(text).unwrap();
    let mut query_count = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().unwrap();
            let query = query.replace("$__rate_interval", "5m").replace("$__range", "1h");
            let query = query.replace("$instance", ".*").replace("$vm", ".*");
            let found = prometheus.query(&query);
            let is_empty = EMPTY_PANELS.contains(&panel["title"].as_str().unwrap());
            assert!(is_empty || found.is_some(), "{}: {query}", panel["title"]);
            query_count += 1;
        }
    }
    eprintln!("the dashboard's {query_count} queries are answered");
}

/// The session of the alert has the guest's work from before it fired.
fn has_what_was_before(lab: &TestLab, session: &str, folder: &Path) {
    let here = folder.join("session");
    std::fs::create_dir(&here).unwrap();
    for file in ["host.dat", "session.json", "why.json"] {
        get(lab, &format!("{session}/{file}"), &here.join(file));
    }
    let why: Value =
        serde_json::from_str(&std::fs::read_to_string(here.join("why.json")).unwrap()).unwrap();
    assert_eq!(why["trigger"]["kind"], "alert", "{why}");
    assert!(why["trigger"]["text"].as_str().unwrap().contains("GuestRunsCpuid"), "{why}");
    let exits = json(&["exits", "--format", "json", here.to_str().unwrap()]);
    let rows = exits["rows"].as_array().unwrap();
    let count =
        |reason: &str| rows.iter().find(|row| row["reason"] == reason).unwrap()["count"].clone();
    assert_eq!(count("hypercall"), 70);
    assert!(count("cpuid").as_u64() >= Some(1500));
    assert_eq!(exits["losses"]["events_lost"], 0);
}

fn get(lab: &TestLab, from: &str, to: &Path) {
    lab.run(&["get", "1", from, to.to_str().unwrap()]).done();
}

fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited for {PATIENCE:?}");
        thread::sleep(Duration::from_secs(1));
    }
}

/// Accepts requests here, and makes each with a command in level 1 to a server there.
fn relay(lab: &Arc<TestLab>, port: u16) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let lab = Arc::downgrade(lab);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(mut client), Some(lab)) = (client, lab.upgrade()) else { return };
            let Some(request) = request(&mut client, at, port) else { continue };
            let request = STANDARD.encode(request);
            let script = format!("echo {request} | base64 -d | nc 127.0.0.1 {port} | base64");
            let answer: String = lab.shell(1, &script).done().stdout.split_whitespace().collect();
            // The client may have disconnected.
            let _ = client.write_all(&STANDARD.decode(answer).unwrap());
        }
    });
    at
}

/// A request, as if it had been made to the server in level 1.
fn request(client: &mut TcpStream, at: SocketAddr, port: u16) -> Option<Vec<u8>> {
    let (mut bytes, mut some) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                let host_header = format!("Host: 127.0.0.1:{port}");
                return Some(text.replace(&format!("Host: {at}"), &host_header).into_bytes());
            }
        }
        match client.read(&mut some) {
            Ok(count @ 1..) => bytes.extend_from_slice(&some[..count]),
            _ => return None,
        }
    }
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn start(program: &str, arguments: &[String]) -> Running {
    let mut command = Command::new(program);
    Running(command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

struct Alertmanager {
    at: SocketAddr,
    _running: Running,
}

impl Alertmanager {
    fn start(folder: &Path, flight: SocketAddr) -> Self {
        let at = free_address();
        let config = folder.join("alertmanager.yml");
        let text = format!(
            "route:\n  receiver: flight\n  group_wait: 0s\nreceivers:\n  - name: flight\n    webhook_configs:\n      \
             - url: http://{flight}/alert\n"
        );
        std::fs::write(&config, text).unwrap();
        let running = start(
            "prometheus-alertmanager",
            &[
                format!("--config.file={}", config.display()),
                format!("--storage.path={}", folder.join("alerts").display()),
                format!("--web.listen-address={at}"),
                "--cluster.listen-address=".to_owned(),
            ],
        );
        Self { at, _running: running }
    }
}

struct Prometheus {
    at: SocketAddr,
    _running: Running,
}

impl Prometheus {
    fn start(folder: &Path, metrics: SocketAddr, alertmanager: SocketAddr) -> Self {
        let at = free_address();
        let config = folder.join("prometheus.yml");
        let rules = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../packaging/prometheus/hyperscope.rules.yaml"
        );
        let test_rules = folder.join("own.yml");
        let alert = "groups:\n  - name: test\n    rules:\n      - alert: GuestRunsCpuid\n        \
                     expr: increase(hyperscope_exits_total{reason=\"cpuid\"}[30s]) > 100\n";
        std::fs::write(&test_rules, alert).unwrap();
        let text = format!(
            "global:\n  scrape_interval: 3s\n  scrape_timeout: 3s\n  evaluation_interval: 3s\nscrape_configs:\n  \
             - job_name: hyperscope\n    static_configs:\n      - targets: ['{metrics}']\nrule_files: ['{rules}', '{}']\n\
             alerting:\n  alertmanagers:\n    - static_configs:\n        - targets: ['{alertmanager}']\n",
            test_rules.display()
        );
        std::fs::write(&config, text).unwrap();
        let running = start(
            "prometheus",
            &[
                format!("--config.file={}", config.display()),
                format!("--storage.tsdb.path={}", folder.join("series").display()),
                format!("--web.listen-address={at}"),
                "--enable-feature=native-histograms".to_owned(),
            ],
        );
        let prometheus = Self { at, _running: running };
        wait_for(|| prometheus.query("up{job=\"hyperscope\"}").filter(|up| *up == 1.0));
        prometheus
    }

    /// The current value of a series; `None`: there is none yet, or no reply.
    fn query(&self, promql: &str) -> Option<f64> {
        let mut encoded = String::new();
        for byte in promql.bytes() {
            encoded += &format!("%{byte:02x}");
        }
        let mut stream = TcpStream::connect(self.at).ok()?;
        write!(stream, "GET /api/v1/query?query={encoded} HTTP/1.0\r\nHost: {}\r\n\r\n", self.at)
            .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let answer: Value = serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()?;
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }

    fn number(&self, promql: &str) -> f64 {
        self.query(promql).unwrap_or_else(|| panic!("no answer to {promql}"))
    }
}
