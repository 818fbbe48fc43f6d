//! Receives alerts from Prometheus' Alertmanager through a webhook: a firing alert makes a session.

use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use httpd::{Answer, Bounds, Guard, Query, Server};
use os::confine::Confined;
use parking_lot::Mutex;
use recorder::flight::{Ask, FlightEvent, TriggerKind, trigger_now};
use serde_json::Value;

use command::notice::say;

/// Max bytes of a message: some hundred alerts.
const MAX_BYTES: usize = 256 << 10;
/// Max concurrent clients.
const CONNECTIONS: usize = 4;
/// Max number of named alerts per message, and max characters per alert.
const MAX_NAMED: usize = 5;
const MAX_CHARS: usize = 400;

/// Opens the address to which alerts are posted.
pub(super) fn open(at: SocketAddr) -> anyhow::Result<Server> {
    let bounds = Bounds {
        connections: CONNECTIONS,
        body_bytes: MAX_BYTES,
        answer_within: Duration::from_secs(5),
        ..Bounds::default()
    };
    let server = Server::open(at, Guard::default(), bounds);
    server.with_context(|| format!("cannot listen on {at}"))
}

/// Starts to receive alerts. After an alert has made a session, others are ignored for `rest`.
pub(super) fn begin(
    server: Server,
    rest: Duration,
    request_sender: Sender<FlightEvent>,
) -> anyhow::Result<()> {
    say(&format!("listening for alerts on {}alert", server.address()));
    let latest = Mutex::new(None);
    thread::Builder::new().name("alerts".to_owned()).spawn(move || {
        Confined::Listener.enter();
        server.serve(&|query| answer(query, &latest, rest, &request_sender));
    })?;
    Ok(())
}

fn answer(
    query: &Query,
    latest: &Mutex<Option<Instant>>,
    rest: Duration,
    request_sender: &Sender<FlightEvent>,
) -> Answer {
    let Some(body) = query.body.as_ref().filter(|_| query.name == "alert") else {
        return Answer::sentence(404, "not found: post alerts to /alert");
    };
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return Answer::sentence(400, "the body is not JSON");
    };
    let Some(text) = firing(&message) else {
        return Answer::sentence(200, "no alert is firing: nothing to do");
    };
    let mut latest = latest.lock();
    if latest.is_some_and(|latest| latest.elapsed() < rest) {
        return Answer::sentence(200, "the session of an earlier alert includes this one");
    }
    let trigger = trigger_now(TriggerKind::Alert, Some(text));
    if request_sender.send(FlightEvent::Dump(Ask { trigger, reply: None })).is_err() {
        return Answer::sentence(503, "the recorder is stopping");
    }
    *latest = Some(Instant::now());
    Answer::sentence(200, "saving a session")
}

/// The firing alerts of a message, with their labels `vm` and `instance`; `None` if none fires.
fn firing(message: &Value) -> Option<String> {
    let alerts = message.get("alerts")?.as_array()?;
    let fires = |alert: &&Value| alert.get("status").and_then(Value::as_str) == Some("firing");
    let names = alerts.iter().filter(fires).take(MAX_NAMED).map(|alert| {
        let label = |name: &str| alert.get("labels")?.get(name)?.as_str();
        let label_names = ["vm", "reason", "instance"].into_iter();
        let more: Vec<String> =
            label_names.filter_map(|name| Some(format!("{name}={}", label(name)?))).collect();
        let name = label("alertname").unwrap_or("an unnamed alert");
        if more.is_empty() { name.to_owned() } else { format!("{name} ({})", more.join(", ")) }
    });
    let names: Vec<String> = names.collect();
    let text: String = names.join("; ").chars().take(MAX_CHARS).collect();
    (!names.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use serde_json::json;

    use super::*;

    #[test]
    fn alerts_that_fire_are_named() {
        let alert = |status: &str, name: &str| json!({ "status": status, "labels": { "alertname": name, "vm": "web", "severity": "page" } });
        let message =
            |alerts: Vec<Value>| json!({ "version": "4", "status": "firing", "alerts": alerts });
        let both = message(vec![alert("resolved", "Old"), alert("firing", "Slow")]);
        assert_eq!(firing(&both).as_deref(), Some("Slow (vm=web)"));
        assert_eq!(firing(&message(vec![alert("resolved", "Old")])), None);
        for other in [json!(null), json!({ "alerts": 1 }), json!({ "alerts": [1, null] })] {
            assert_eq!(firing(&other), None);
        }
        let nameless = message(vec![json!({ "status": "firing" })]);
        assert_eq!(firing(&nameless).as_deref(), Some("an unnamed alert"));
        let many = message(vec![alert("firing", &"x".repeat(1000)); 100]);
        assert_eq!(firing(&many).map(|text| text.chars().count()), Some(MAX_CHARS));
    }

    #[test]
    fn one_alert_makes_a_session_and_the_next_waits() {
        let (request_sender, asks) = mpsc::channel();
        let latest = Mutex::new(None);
        let query = |name: &str, body: Option<&str>| {
            let mut query = Query::default();
            query.name = name.to_owned();
            query.body = body.map(|text| text.as_bytes().to_vec());
            query
        };
        let post = |name: &str, body: Option<&str>, rest_s: u64| {
            answer(&query(name, body), &latest, Duration::from_secs(rest_s), &request_sender).status
        };
        let fires = r#"{"alerts":[{"status":"firing","labels":{"alertname":"Slow"}}]}"#;
        assert_eq!((post("alert", None, 9), post("", Some(fires), 9)), (404, 404));
        assert_eq!(post("alert", Some("{"), 9), 400);
        assert_eq!(post("alert", Some("{}"), 9), 200);
        assert!(asks.try_recv().is_err());
        assert_eq!((post("alert", Some(fires), 9), post("alert", Some(fires), 9)), (200, 200));
        let Ok(FlightEvent::Dump(ask)) = asks.try_recv() else { panic!("nothing was asked") };
        assert_eq!(ask.trigger.text.as_deref(), Some("Slow"));
        assert!(asks.try_recv().is_err(), "the first has it in it");
        assert_eq!(post("alert", Some(fires), 0), 200);
        assert!(asks.try_recv().is_ok());
        drop(asks);
        assert_eq!(post("alert", Some(fires), 0), 503);
    }
}
