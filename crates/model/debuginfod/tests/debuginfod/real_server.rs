//! Debian's own server, and elfutils' client on the same cache.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perfdata::Mapping;
use symbols::{BuildId, DebugFiles, Fetch, Kallsyms, Machine, Names, ProcessLog, WantedFile};

use crate::programs::{Program, build, client};

/// A server of the files in a folder.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Starts it, and waits until it has looked through the folder; `None`: it is not installed.
    fn start(folder: &Path, has: &Program) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Command::new("debuginfod");
        server.args(["-F", "-d", ":memory:", "-p", &port.to_string()]).arg(folder);
        server.env_remove("DEBUGINFOD_URLS").stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(process) = server.spawn() else {
            testkit::skip!("debuginfod is not installed");
            return None;
        };
        let server = Self { process, url: format!("http://127.0.0.1:{port}") };
        let start = Instant::now();
        let address = format!("127.0.0.1:{port}");
        while !has_it(&address, &has.build_id) {
            assert!(start.elapsed() < Duration::from_secs(60), "it finds nothing");
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether it has the debug file and the program by now.
fn has_it(address: &str, build_id: &BuildId) -> bool {
    use std::io::{Read, Write};
    ["debuginfo", "executable"].iter().all(|kind| {
        let Ok(mut stream) = TcpStream::connect(address) else { return false };
        let request = format!("GET /buildid/{build_id}/{kind} HTTP/1.0\r\n\r\n");
        let mut head = [0; 12];
        let exchange =
            stream.write_all(request.as_bytes()).and_then(|()| stream.read_exact(&mut head));
        exchange.is_ok() && head.ends_with(b"200")
    })
}

/// What a place in the middle of the program's only function is called, in a guest that had it mapped.
fn name(program: &Program, files: DebugFiles) -> String {
    let debug = fs::read(&program.debug).unwrap();
    let functions = symbols::ElfFunctions::parse(&debug).unwrap();
    let code = functions.segments[0];
    let named = |into: &u64| {
        let found = functions.at(&debug, code.address + into);
        found.is_some_and(|found| found.name == program.function.as_bytes())
    };
    let into = (0..code.len).find(named).unwrap();
    let mut log = ProcessLog::default();
    let begin = code.address & !4095;
    let mapping = Mapping {
        pid: 7,
        tid: 7,
        addr: 0x5555_0000_0000,
        len: (code.address + code.len).next_multiple_of(4096) - begin,
        file_offset: begin,
        build_id: Some(program.build_id),
        protection: None,
        path: b"/usr/bin/in-a-guest",
    };
    log.mapping(0, &mapping);
    let kernel = Kallsyms::default();
    let machine = Machine::elsewhere(&kernel, log.finish());
    let place = machine.user_place(7, 1, 0x5555_0000_0000 + code.address - begin + into);
    Names::new(files).name(&machine, place).to_string()
}

/// elfutils' client, without any server.
fn find(kind: &str, build_id: &BuildId, cache: &Path, urls: &str) -> Option<(bool, String)> {
    let mut find = Command::new("debuginfod-find");
    find.args([kind, &build_id.to_string()]).env("DEBUGINFOD_CACHE_PATH", cache);
    let Ok(out) = find.env("DEBUGINFOD_URLS", urls).output() else {
        testkit::skip!("debuginfod-find is not installed");
        return None;
    };
    Some((out.status.success(), String::from_utf8_lossy(&out.stdout).trim().to_owned()))
}

#[test]
fn debians_server_names_what_is_stripped_here() {
    let at = tempfile::tempdir().unwrap();
    let folder = at.path().join("served");
    fs::create_dir(&folder).unwrap();
    let (program, cache) = (build(&folder, 11), at.path().join("cache"));
    let Some(server) = Server::start(&folder, &program) else { return };
    let (client, log) = client(std::slice::from_ref(&server.url), &cache);
    let none = || DebugFiles::of_folders(Vec::new());
    assert!(name(&program, none()).starts_with("in-a-guest+0x"));
    let named = name(&program, none().then(Box::new(client)));
    assert_eq!(named, format!("{} [in-a-guest]", program.function));
    assert_eq!(log.lines(), Vec::<String>::new());
    let came = fs::read(cache.join(program.build_id.to_string()).join("debuginfo")).unwrap();
    assert_eq!(came, fs::read(&program.debug).unwrap());
}

#[test]
fn the_cache_is_that_of_elfutils_client() {
    let at = tempfile::tempdir().unwrap();
    let folder = at.path().join("served");
    fs::create_dir(&folder).unwrap();
    let (ours, theirs) = (build(&folder, 12), build(&folder, 13));
    let Some(server) = Server::start(&folder, &ours) else { return };
    let cache = at.path().join("cache");
    let (mut first, _) = client(std::slice::from_ref(&server.url), &cache);
    let path = first.fetch("p", &ours.build_id, WantedFile::DebugFile).unwrap();
    let missing = BuildId::new(&[3; 20]);
    assert_eq!(first.fetch("p", &missing, WantedFile::DebugFile), None);
    // What they fetch, too.
    let Some((found, _)) = find("debuginfo", &theirs.build_id, &cache, &server.url) else { return };
    assert!(found);
    let missing_of_theirs = BuildId::new(&[4; 20]);
    find("debuginfo", &missing_of_theirs, &cache, &server.url);
    drop(server);
    // From here on nobody serves.
    let gone = "http://127.0.0.1:1".to_owned();
    let (mut other, log) = client(std::slice::from_ref(&gone), &cache);
    assert!(other.fetch("p", &theirs.build_id, WantedFile::DebugFile).is_some());
    assert_eq!(other.fetch("p", &missing_of_theirs, WantedFile::DebugFile), None);
    assert_eq!(log.lines(), Vec::<String>::new());
    let found = find("debuginfo", &ours.build_id, &cache, &gone).unwrap();
    assert_eq!(found, (true, path.display().to_string()));
    let trace = |build_id: &BuildId| {
        let mut find = Command::new("debuginfod-find");
        find.args(["debuginfo", &build_id.to_string()]).env("DEBUGINFOD_CACHE_PATH", &cache);
        let out = find.env("DEBUGINFOD_URLS", &gone).env("DEBUGINFOD_VERBOSE", "1").output();
        let out = out.unwrap();
        (out.status.success(), String::from_utf8_lossy(&out.stderr).contains("127.0.0.1:1/"))
    };
    // Of what is missing it asks nobody; of what nobody knows it does.
    assert_eq!(trace(&missing), (false, false));
    assert_eq!(trace(&BuildId::new(&[5; 20])), (false, true));
}
