//! A server of S3's protocol on loopback, over a folder.

#![allow(clippy::unwrap_used, clippy::expect_used, dead_code)]

pub mod faults;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

pub const KEY: &str = "ann";
pub const SECRET: &str = "a secret of the store";
const VERSION: &str = "v1.8.0";

/// The server; it ends with this.
pub struct Store {
    /// `HOST:PORT`.
    pub at: String,
    server: Child,
}

impl Store {
    /// Serves `FOLDER/root`, whose folders are buckets; `None` where the server can't be had.
    pub fn new(folder: &Path) -> Option<Self> {
        let program = PROGRAM.as_ref()?;
        let (root, more) = (folder.join("root"), folder.join("more"));
        fs::create_dir_all(root.join("lakes")).unwrap();
        fs::create_dir_all(&more).unwrap();
        let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let server = Command::new(program)
            .args(["--quiet", "--port", &at, "posix", "--sidecar"])
            .args([&more, &root])
            .envs([("ROOT_ACCESS_KEY", KEY), ("ROOT_SECRET_KEY", SECRET)])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while TcpStream::connect(&at).is_err() {
            assert!(start.elapsed() < Duration::from_secs(30), "the store does not start");
            thread::sleep(Duration::from_millis(20));
        }
        Some(Self { at, server })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Built by the first test that needs it; others wait.
static PROGRAM: LazyLock<Option<PathBuf>> = LazyLock::new(program);

/// Once built it is kept in CI's cache, where there is one, else among the build's files.
fn program() -> Option<PathBuf> {
    let cache = std::env::var_os("HYPERSCOPE_CI_CACHE").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let folder = cache.join(format!("versitygw-{VERSION}"));
    let program = folder.join("versitygw");
    if !program.is_file() {
        let module = format!("github.com/versity/versitygw/cmd/versitygw@{VERSION}");
        let built = Command::new("go")
            .args(["install", "-modcacherw", &module])
            .envs([
                ("GOBIN", &folder),
                ("GOMODCACHE", &folder.join("modules")),
                ("GOCACHE", &folder.join("cache")),
            ])
            .output();
        let _ = fs::remove_dir_all(folder.join("modules"));
        let _ = fs::remove_dir_all(folder.join("cache"));
        if !built.is_ok_and(|done| done.status.success()) {
            eprintln!("left out: go can't build versitygw {VERSION}");
            return None;
        }
    }
    Some(program)
}
