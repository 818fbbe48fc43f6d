//! Small programs that tests build, and what binutils say of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfdata::BuildId;
use symbols::ElfFunctions;

const SOURCE: &str = "
static volatile unsigned long sink;
__attribute__((noinline)) void spin_a(void) { for (int i = 0; i < 20000; i++) sink += i; }
static __attribute__((noinline)) void spin_b(void) { for (int i = 0; i < 10000; i++) sink ^= i; }
extern void spin_c(void) __attribute__((alias(\"spin_a\")));
__attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) { spin_a(); spin_b(); } }
int main(void) { work(40000); return 0; }
";

/// Runs a program and returns what it printed; a panic if it failed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let out = Command::new(program).args(arguments).output().unwrap();
    assert!(
        out.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).unwrap()
}

/// Whether a program is there.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Builds the program with these flags.
pub(crate) fn build(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&source, SOURCE).unwrap();
    let files = ["-o", text(&program), text(&source)];
    run("gcc", &[&["-g", "-O1", "-Wl,--build-id=sha1"][..], flags, &files].concat());
    program
}

/// All kinds: at any address, at a fixed one, a library.
pub(crate) fn build_all(folder: &Path) -> Vec<PathBuf> {
    let kinds: [(&str, &[&str]); 4] = [
        ("pie", &["-fPIE", "-pie"]),
        ("fixed", &["-fno-pie", "-no-pie"]),
        ("lib.so", &["-fPIC", "-shared"]),
        ("packed", &["-fPIE", "-pie", "-Wl,-z,noseparate-code"]),
    ];
    kinds.into_iter().map(|(name, flags)| build(folder, name, flags)).collect()
}

/// A function as `nm` lists it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) size: u64,
    pub(crate) names: Vec<String>,
}

/// The functions that `nm` lists with a size, by address.
pub(crate) fn nm(program: &Path) -> BTreeMap<u64, Listed> {
    let mut all: BTreeMap<u64, Listed> = BTreeMap::new();
    for line in run("nm", &["-S", "--defined-only", text(program)]).lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [address, size, kind, name] = words[..] else { continue };
        if matches!(kind, "T" | "t" | "W" | "i") {
            let hex = |word| u64::from_str_radix(word, 16).unwrap();
            let function = all.entry(hex(address)).or_default();
            function.size = hex(size);
            function.names.push(name.to_owned());
        }
    }
    all
}

/// The build id that `readelf` shows.
pub(crate) fn build_id(program: &Path) -> BuildId {
    let notes = run("readelf", &["-n", text(program)]);
    let line = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    let bytes = (0..line.len()).step_by(2);
    let bytes: Vec<u8> =
        bytes.map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect();
    BuildId::new(&bytes)
}

/// How the kernel maps the program's code: offset and length in bytes, in pages; and the program's own address
/// of that offset.
pub(crate) fn mapped(program: &Path) -> (u64, u64, u64) {
    let functions = ElfFunctions::parse(&fs::read(program).unwrap()).unwrap();
    let code = functions.segments[0];
    let page = |address: u64| address & !4095;
    let begin = page(code.file_offset);
    let end = page(code.file_offset + code.file_len + 4095);
    (begin, end - begin, page(code.address))
}
