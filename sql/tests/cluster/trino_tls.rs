//! Trino by https: one node, with a certificate of a CA of its own and a file of users with passwords.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::alike::{FIXTURES, assert_alike, command, output_of, queries, sources};
use crate::{folder, variable};

const PASSWORD: &str = "HYPERSCOPE_TRINO_PASSWORD";

fn file(name: &str) -> String {
    format!("{}/{name}", variable("HYPERSCOPE_TRINO_TLS_FILES"))
}

/// Asks as ann, with more of the URL.
fn asking(query: &str, source: &str, more: &str) -> Command {
    let at = variable("HYPERSCOPE_TRINO_TLS");
    let engine = format!("trino={at}?ca={}&user=ann{more}", file("ca.pem"));
    let mut command = command(&["sql", "--format", "json", query, source, "--engine", &engine]);
    command.env_remove(PASSWORD).env_remove("HYPERSCOPE_TRINO_TOKEN");
    command
}

#[track_caller]
fn refused(command: &mut Command, why: &str) {
    let done = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(1) && stderr.contains(why), "{stderr}");
    eprint!("{stderr}");
}

#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn answers_alike_who_has_the_password() {
    let folder = folder("trino-tls");
    let sources = sources(&folder);
    let named = format!("&password-file={}", file("password"));
    let password = fs::read_to_string(file("password")).unwrap();
    for (at, query) in queries().iter().enumerate() {
        let expected = output_of(&["sql", "--format", "json", query, &sources[0]]);
        // By the file, and by the environment.
        let mut asking = asking(query, &sources[0], if at % 2 == 0 { &named } else { "" });
        if at % 2 == 1 {
            asking.env(PASSWORD, password.trim_end());
        }
        let done = asking.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{stderr}");
        let found = String::from_utf8(done.stdout).unwrap();
        let rows = assert_alike(&expected, &found, query.starts_with('@'), query);
        eprintln!("{rows} rows alike by trino over https: {query}");
    }
}

#[test]
#[ignore = "needs a running cluster: make test-cluster starts it and runs this"]
fn who_has_none_is_refused() {
    let (query, source) = ("SELECT COUNT(*) AS n FROM exits", FIXTURES[0]);
    refused(
        &mut asking(query, source, ""),
        "it wants to know that it is ann who asks (status 401)",
    );
    refused(
        asking(query, source, "").env(PASSWORD, "no"),
        "it refuses ann with what was given (status 401)",
    );
    let open = folder("trino-tls-open").join("password");
    fs::write(&open, "x\n").unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    let more = format!("&password-file={}", open.display());
    refused(&mut asking(query, source, &more), "chmod 600");
    // Without the CA's file it is a server that nobody here vouches for, whatever it is asked by.
    let engine = format!("trino={}?user=ann", variable("HYPERSCOPE_TRINO_TLS"));
    let mut command = command(&["sql", query, source, "--engine", &engine]);
    refused(command.env(PASSWORD, "no"), "by no CA that this system trusts");
}
