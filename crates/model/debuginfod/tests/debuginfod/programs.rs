//! A program whose names are in a debug file, and who is kept informed while that is fetched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use debuginfod::{Coming, Debuginfod, Settings, Watch};
use parking_lot::Mutex;
use symbols::{BuildId, ElfFunctions};

/// A stripped program, and what was stripped off.
pub(crate) struct Program {
    pub(crate) stripped: PathBuf,
    pub(crate) debug: PathBuf,
    pub(crate) build_id: BuildId,
    pub(crate) function: String,
}

fn run(program: &str, arguments: &[&str]) {
    let out = Command::new(program).args(arguments).output().unwrap();
    assert!(out.status.success(), "{program}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Builds one in a folder; of another number another one.
pub(crate) fn build(folder: &Path, number: u32) -> Program {
    let function = format!("only_in_debug_file_{number}");
    let path = |name: &str| folder.join(format!("{name}{number}"));
    let (source, unstripped) = (folder.join(format!("p{number}.c")), path("whole"));
    let (stripped, debug) = (path("program"), folder.join(format!("program{number}.debug")));
    let text = format!(
        "static volatile int sum;\n\
         static __attribute__((noinline)) int {function}(int n) {{ return sum += n; }}\n\
         int main(void) {{ return {function}(1); }}\n"
    );
    fs::write(&source, text).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let [source, unstripped, to, names] =
        [&source, &unstripped, &stripped, &debug].map(|path| text(path));
    run("gcc", &["-g", "-O1", "-Wl,--build-id=sha1", "-o", &unstripped, &source]);
    run("objcopy", &["--only-keep-debug", &unstripped, &names]);
    run("objcopy", &["--strip-all", &format!("--add-gnu-debuglink={names}"), &unstripped, &to]);
    let build_id = ElfFunctions::build_id_of(&fs::read(&stripped).unwrap()).unwrap();
    fs::remove_file(unstripped).unwrap();
    Program { stripped, debug, build_id, function }
}

/// What was said to people, and the bytes of what came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(pub(crate) Arc<Mutex<(Vec<String>, u64)>>);

impl Watch for Heard {
    fn coming(&mut self, file: &Coming<'_>) {
        let mut log = self.0.lock();
        log.1 = log.1.max(file.bytes);
    }

    fn over(&mut self) {}

    fn warn(&mut self, line: &str) {
        self.0.lock().0.push(line.to_owned());
    }
}

impl Heard {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().0.clone()
    }
}

/// A client of these servers, with bounds that tests wait for.
pub(crate) fn client(servers: &[String], cache: &Path) -> (Debuginfod, Heard) {
    with(settings(servers, cache))
}

pub(crate) fn settings(servers: &[String], cache: &Path) -> Settings {
    Settings {
        servers: servers.to_vec(),
        cache: cache.to_owned(),
        timeout: Duration::from_secs(2),
        most_file_time: Duration::from_secs(60),
        most_time: Duration::from_secs(120),
        most_file_bytes: 64 << 20,
    }
}

pub(crate) fn with(settings: Settings) -> (Debuginfod, Heard) {
    let log = Heard::default();
    (Debuginfod::new(settings, Box::new(log.clone())), log)
}
