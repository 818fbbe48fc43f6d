//! What comes from a server that calls itself Trino is not trusted: no answer of it hangs, grows or leads elsewhere.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod alike;
mod server;

use std::thread;

use alike::FIXTURES;
use server::{asking, run, server};

/// Exit code, standard output and standard error.
fn ask(at: &str) -> (i32, String, String) {
    run(&mut asking(at, "?user=ann"))
}

#[test]
fn pages_are_one_answer() {
    let columns = r#""columns":[{"name":"a","type":"bigint"},{"name":"b","type":"varchar"}]"#;
    let found = server(move |address, number| match number {
        // Each of the statements before the query, and the one after it.
        0..=2 | 7.. => (200, "{}".to_owned()),
        3 => (200, format!(r#"{{"nextUri":"{address}/v1/statement/queued/1"}}"#)),
        4 => (503, "busy".to_owned()),
        5 => (
            200,
            format!(
                r#"{{{columns},"data":[[1,"x"]],"nextUri":"{address}/v1/statement/executing/2"}}"#
            ),
        ),
        6 => (200, r#"{"data":[[9007199254740993,null]]}"#.to_owned()),
    });
    let (code, out, err) = ask(&found.at);
    assert_eq!((code, &*out), (0, "a,b\n1,x\n9007199254740993,\n"), "{err}");
    let requests: Vec<_> = found.requests.try_iter().collect();
    let statements: Vec<_> =
        requests.iter().filter(|(_, body)| !body.is_empty()).map(|(_, body)| &**body).collect();
    assert!(
        statements[0].starts_with("CREATE SCHEMA IF NOT EXISTS lake.hyperscope_"),
        "{statements:?}"
    );
    assert_eq!(statements[3], "SELECT a, b FROM exits", "{statements:#?}");
    assert!(statements[4].starts_with("DROP SCHEMA"), "{statements:?}");
    let head = requests[3].0.to_ascii_lowercase();
    for line in [
        "post /v1/statement ",
        "x-trino-user: ann",
        "x-trino-catalog: lake",
        "x-trino-schema: hyperscope_",
    ] {
        assert!(head.contains(line), "{head}");
    }
}

#[test]
fn what_is_no_answer_ends_with_a_reason() {
    let reply = |text: &'static str| move |_: &str, _| (200, text.to_owned());
    for (at, why) in [
        (server(reply("no")).at, "no page of Trino's"),
        (
            server(reply(r#"{"nextUri":"http://127.0.0.1:1/v1/statement/x"}"#)).at,
            "which is not its own",
        ),
        (server(reply(r#"{"nextUri":"x"}"#)).at, "which is not its own"),
        (
            server(|address, _| (200, format!(r#"{{"nextUri":"{address}/other"}}"#))).at,
            "which is not its own",
        ),
        (server(reply("{}")).at, "answers without columns"),
        (
            server(reply(r#"{"error":{"message":"line 1:1: no\u001b[2J"}}"#)).at,
            "Trino: line 1:1: no\\x1b[2J",
        ),
        (
            server(reply(r#"{"columns":[{"name":"a","type":"bigint"}],"data":[["x"]]}"#)).at,
            "no value of its column's type",
        ),
        (
            server(reply(r#"{"columns":[{"name":"a","type":"bigint"}],"data":[[1,2]]}"#)).at,
            "2 values for 1 columns",
        ),
        (
            server(|_, _| (401, String::new())).at,
            "it is ann who asks (status 401): give a password",
        ),
        (server(|_, _| (302, String::new())).at, "status 302"),
        (server(|_, _| (404, "<html>".repeat(1000))).at, "status 404 <html>"),
        (server(|_, _| (200, " ".repeat(40 << 20))).at, "Trino at http"),
    ] {
        let (code, out, err) = ask(&at);
        assert!(code == 1 && err.contains(why) && err.len() < 1000, "{why}: {code} {out} {err}");
    }
}

/// Whoever gives up has the query end there, too.
#[test]
fn a_query_that_nobody_waits_for_is_canceled() {
    let found = server(|address, number| match number {
        0..=2 => (200, "{}".to_owned()),
        _ => {
            thread::sleep(std::time::Duration::from_millis(50));
            (200, format!(r#"{{"nextUri":"{address}/v1/statement/executing/{number}"}}"#))
        }
    });
    let engine = format!("trino={}/lake", found.at);
    let query = "SELECT a, b FROM exits";
    let mut child =
        alike::command(&["sql", "--engine", &engine, query, FIXTURES[0]]).spawn().unwrap();
    let mut heads = found.requests.iter().map(|(head, _)| head);
    assert!(heads.by_ref().take(500).any(|head| head.contains("/executing/")));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert!(heads.take(500).any(|head| head.starts_with("DELETE /v1/statement/executing/")));
}
