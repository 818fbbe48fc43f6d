//! Functions of real programs and libraries: as `nm` and `addr2line` have them, with and without debug files.

use std::fs;
use std::path::{Path, PathBuf};

use perfdata::{BuildId, Mapping};
use symbols::{DebugFiles, ElfFunctions, Fetch, Kallsyms, Machine, Names, ProcessLog, WantedFile};

use crate::programs::{build, build_all, build_id, has, mapped, nm, run, text};

const BASE: u64 = 0x5555_5555_0000;

#[test]
fn functions_are_those_that_nm_lists() {
    let folder = tempfile::tempdir().unwrap();
    let mut programs = build_all(folder.path());
    // The toolchain's own library, and this test, which has names of Rust's.
    programs.push(PathBuf::from(run("gcc", &["-print-file-name=libgcc_s.so.1"]).trim()));
    programs.push(std::env::current_exe().unwrap());
    for program in programs {
        let file = fs::read(&program).unwrap();
        let functions = ElfFunctions::parse(&file).unwrap();
        let listed = nm(&program);
        for (address, function) in &listed {
            for into in [0, function.size / 2, function.size.saturating_sub(1)] {
                let found = functions.at(&file, address + into).unwrap();
                let name = String::from_utf8_lossy(found.name).into_owned();
                // Some functions have others within.
                let inner = listed.range(..=address + into).next_back().unwrap();
                assert!(
                    function.names.contains(&name) || inner.1.names.contains(&name),
                    "{}: {address:#x}+{into}: {name}, {function:?}",
                    program.display()
                );
            }
        }
        assert_eq!(functions.is_whole, !listed.is_empty());
    }
}

#[test]
fn addresses_have_addr2lines_names() {
    let folder = tempfile::tempdir().unwrap();
    for program in build_all(folder.path()) {
        let file = fs::read(&program).unwrap();
        let functions = ElfFunctions::parse(&file).unwrap();
        for (&address, function) in &nm(&program) {
            let address_text = format!("{:#x}", address + function.size / 2);
            let output = run("addr2line", &["-f", "-e", text(&program), &address_text]);
            let found = functions.at(&file, address + function.size / 2).unwrap();
            let expected = output.lines().next().unwrap();
            assert!(
                expected == "??" || function.names.iter().any(|name| name == expected),
                "{expected}: {function:?}"
            );
            assert!(function.names.iter().any(|name| name.as_bytes() == found.name));
        }
    }
}

/// Whose process it is.
#[derive(Clone, Copy)]
enum Owner {
    Host,
    Guest,
}

/// A process that mapped `program`; names of the middle of its functions.
fn names(
    program: &Path,
    path: &Path,
    build_id: BuildId,
    owner: Owner,
    files: DebugFiles,
) -> Vec<(String, String)> {
    let (file_offset, len, address) = mapped(program);
    let mut log = ProcessLog::default();
    let mapping = Mapping {
        pid: 7,
        tid: 7,
        addr: BASE,
        len,
        file_offset,
        build_id: Some(build_id),
        protection: Some(5),
        path: text(path).as_bytes(),
    };
    log.mapping(0, &mapping);
    let kernel = Kallsyms::default();
    let machine = match owner {
        Owner::Host => Machine::here(&kernel, log.finish()),
        Owner::Guest => Machine::elsewhere(&kernel, log.finish()),
    };
    let mut names = Names::new(files);
    let mut found = Vec::new();
    for (at, function) in nm(program).iter().filter(|(_, function)| function.size > 1) {
        let place = machine.user_place(7, 1, BASE + at - address + function.size / 2);
        let name = names.name(&machine, place);
        assert_eq!(name.offset, file_offset + at - address + function.size / 2);
        let expected = if name.symbol.is_some() { &function.names[..] } else { &[] };
        let symbol = name.symbol.as_deref().unwrap_or_default().to_owned();
        assert!(expected.is_empty() || expected.contains(&symbol), "{symbol}: {function:?}");
        found.push((function.names[0].clone(), name.to_string()));
    }
    assert!(found.iter().any(|(name, _)| name == "spin_b"));
    found
}

fn nothing() -> DebugFiles {
    DebugFiles::of_folders(Vec::new())
}

fn are_named(found: &[(String, String)]) -> bool {
    found.iter().all(|(_, name)| !name.contains("+0x"))
}

#[test]
fn a_file_here_names_its_functions_if_it_has_the_build_id() {
    let folder = tempfile::tempdir().unwrap();
    for program in build_all(folder.path()) {
        let id = build_id(&program);
        assert!(are_named(&names(&program, &program, id, Owner::Host, nothing())));
        let other = names(&program, &program, BuildId::new(&[7; 20]), Owner::Host, nothing());
        let file = program.file_name().unwrap().to_str().unwrap();
        for (_, name) in &other {
            assert!(name.starts_with(&format!("{file}+0x")), "{name}");
        }
        // What a guest had at this path may be anything.
        let elsewhere = names(&program, &program, id, Owner::Guest, nothing());
        assert_eq!(elsewhere, other);
    }
}

/// Puts a program's symbols into a file of its own, in a folder of debug files.
fn split(program: &Path, tool: &str, folder: &Path) -> PathBuf {
    let hex = build_id(program).to_string();
    let folder = folder.join(".build-id").join(&hex[..2]);
    fs::create_dir_all(&folder).unwrap();
    let debug = folder.join(format!("{}.debug", &hex[2..]));
    let stripped = program.with_extension("stripped");
    if tool == "objcopy" {
        run("objcopy", &["--only-keep-debug", text(program), text(&debug)]);
        run("strip", &["-o", text(&stripped), text(program)]);
    } else {
        run(tool, &["-f", text(&debug), "-o", text(&stripped), text(program)]);
    }
    stripped
}

#[test]
fn debug_files_name_what_was_stripped() {
    for tool in ["objcopy", "eu-strip"] {
        if !has(tool) {
            println!("skipped: {tool} is not installed");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        for program in build_all(folder.path()) {
            let debug = folder.path().join("debug");
            let stripped = split(&program, tool, &debug);
            let id = build_id(&program);
            let folders = || DebugFiles::of_folders(vec![debug.clone()]);
            let with_both = names(&program, &stripped, id, Owner::Host, folders());
            assert!(are_named(&with_both), "{tool}: {with_both:?}");
            // Of a guest nothing but the debug file is here.
            let with_debug = names(&program, Path::new("/gone"), id, Owner::Guest, folders());
            assert!(are_named(&with_debug), "{tool}: {with_debug:?}");
            let without = names(&program, &stripped, id, Owner::Host, nothing());
            let local = without.iter().find(|(name, _)| name == "spin_b").unwrap();
            assert!(local.1.contains("+0x"), "{local:?}");
        }
    }
}

/// Has one file, under any build id that is asked for.
struct One(PathBuf);

impl Fetch for One {
    fn fetch(&mut self, name: &str, _: &BuildId, wanted: WantedFile) -> Option<PathBuf> {
        assert_eq!((name, wanted), ("gone", WantedFile::Either));
        Some(self.0.clone())
    }
}

#[test]
fn what_was_fetched_counts_if_it_has_the_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "pie", &["-fPIE", "-pie"]);
    let other = build(folder.path(), "other", &["-O2", "-fPIE", "-pie"]);
    let id = build_id(&program);
    let fetch = |path: &Path| nothing().then(Box::new(One(path.to_owned())));
    let gone = Path::new("/gone");
    assert!(are_named(&names(&program, gone, id, Owner::Guest, fetch(&program))));
    let wrong = names(&program, gone, id, Owner::Guest, fetch(&other));
    assert!(wrong.iter().all(|(_, name)| name.starts_with("gone+0x")), "{wrong:?}");
}

/// Devices and pipes at a path that a recording names are not opened: this ends.
#[test]
fn nothing_but_files_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "pie", &["-fPIE", "-pie"]);
    let pipe = folder.path().join("pipe");
    run("mkfifo", &[text(&pipe)]);
    for path in [&pipe, Path::new("/dev/zero"), folder.path()] {
        let found = names(&program, path, build_id(&program), Owner::Host, nothing());
        assert!(!are_named(&found));
    }
}
