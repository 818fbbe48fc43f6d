//! Makes QEMU's emulator translate instructions again if a CPU loops over one that its kernel has patched meanwhile:
//! docs/lab.md, "When a machine hangs".
//!
//! Linux writes a breakpoint over an instruction while it patches it. The emulator may keep its translation of that
//! breakpoint although memory has an instruction again, and the CPU takes the breakpoint forever. Any write to that
//! memory ends this, even one that changes nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::error::{LabError, Result};
use crate::lab::Lab;
use crate::monitor::Monitor;

/// Number of looks at each CPU, and the time between them.
const LOOKS: usize = 10;
const BETWEEN: Duration = Duration::from_millis(100);
/// Min number of looks that find a CPU at one address before its code is translated again.
const MIN_SIGHTINGS: usize = 2;
/// Max time for QEMU's gdb stub to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// Max size of an answer.
const MAX_ANSWER: usize = 256;

/// The position of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    address: u64,
    /// It executes kernel code: it is not idle, and no program runs.
    in_kernel: bool,
}

/// Renews the instructions over which CPUs of level 1 loop, if any; returns their number.
///
/// # Errors
/// When the machine's monitor or gdb stub does not answer.
pub(crate) fn renew(lab: &Lab, cpus: u32) -> Result<usize> {
    let mut monitor = lab.monitor(1)?;
    // A stopped CPU stays where it is.
    if !monitor.is_running()? {
        return Ok(0);
    }
    let circles = circles(&mut monitor, cpus)?;
    if circles.is_empty() {
        return Ok(0);
    }
    let socket = lab.run_folder().join("gdb.sock");
    let text = format!("gdbserver unix:{},server=on,wait=off", socket.display());
    ask(&mut monitor, &text, 0)?;
    let renewed = renew_all(&socket, &circles);
    // Always resumes the machine: the gdb stub stops it while it is connected.
    let ended = ask(&mut monitor, "gdbserver none", 0);
    monitor.go_on()?;
    let _ = std::fs::remove_file(&socket);
    note(lab, &circles);
    renewed.and_then(|()| ended.map(|_| circles.len()))
}

/// Logs each one next to the machine's other logs.
fn note(lab: &Lab, circles: &[(u32, u64)]) {
    let log = File::options().create(true).append(true).open(lab.run_folder().join("renewed.log"));
    let Ok(mut log) = log else { return };
    for (cpu, address) in circles {
        let _ = writeln!(log, "processor {cpu}: the instruction at {address:#x} was read again");
    }
}

/// Addresses to which a CPU comes back while it is neither idle nor runs a program, with the CPU.
fn circles(monitor: &mut Monitor, cpus: u32) -> Result<Vec<(u32, u64)>> {
    let mut found = Vec::new();
    for cpu in 0..cpus {
        let mut seen = BTreeMap::new();
        let mut stays = true;
        for _ in 0..LOOKS {
            let registers = ask(monitor, "info registers", cpu)?;
            let Some(at) = At::parse(&registers).filter(|at| at.in_kernel) else {
                stays = false;
                break;
            };
            *seen.entry(at.address).or_insert(0) += 1;
            std::thread::sleep(BETWEEN);
        }
        let often = seen.into_iter().filter(|(_, times)| stays && *times >= MIN_SIGHTINGS);
        found.extend(often.map(|(address, _)| (cpu, address)));
    }
    Ok(found)
}

impl At {
    /// Parses QEMU's `info registers` of an x86 CPU.
    fn parse(text: &str) -> Option<Self> {
        let after = |name| text.split_once(name).map(|(_, rest)| rest);
        let digits = after("RIP=")?.split_whitespace().next()?;
        let address = u64::from_str_radix(digits, 16).ok()?;
        let in_kernel = after("CPL=")?.starts_with('0') && after("HLT=")?.starts_with('0');
        Some(Self { address, in_kernel })
    }
}

/// Runs a QEMU command that QMP does not have.
fn ask(monitor: &mut Monitor, command: &str, cpu: u32) -> Result<String> {
    let arguments = json!({ "command-line": command, "cpu-index": cpu });
    let answer = monitor.command("human-monitor-command", &arguments)?;
    Ok(answer.as_str().unwrap_or_default().to_owned())
}

fn renew_all(socket: &Path, circles: &[(u32, u64)]) -> Result<()> {
    let failed = |error: std::io::Error| LabError::Monitor(format!("the debugger: {error}"));
    let mut debugger = Debugger::open(socket).map_err(failed)?;
    for &(cpu, address) in circles {
        debugger.renew(cpu, address).map_err(failed)?;
    }
    debugger.ask("D").map(drop).map_err(failed)
}

/// QEMU's gdb stub, with GDB's remote protocol.
struct Debugger(UnixStream);

impl Debugger {
    /// Connects; this stops the machine.
    fn open(socket: &Path) -> std::io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        Ok(Self(stream))
    }

    /// Writes the byte at an address unchanged. Skips an address that can't be read any more.
    fn renew(&mut self, cpu: u32, address: u64) -> std::io::Result<()> {
        // The protocol numbers CPUs from 1.
        self.ask(&format!("Hg{:x}", cpu.saturating_add(1)))?;
        let byte = self.ask(&format!("m{address:x},1"))?;
        let is_byte = byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_byte {
            self.ask(&format!("M{address:x},1:{byte}"))?;
        }
        Ok(())
    }

    /// Sends a packet; returns the answer's text.
    fn ask(&mut self, packet: &str) -> std::io::Result<String> {
        self.0.write_all(&framed(packet))?;
        let mut answer = Vec::new();
        let mut byte = [0];
        // `+`, `$`, the text, `#`, and two digits of its checksum.
        while !matches!(answer.as_slice(), [.., b'#', _, _]) && answer.len() < MAX_ANSWER {
            self.0.read_exact(&mut byte)?;
            answer.extend_from_slice(&byte);
        }
        self.0.write_all(b"+")?;
        let text = String::from_utf8_lossy(&answer);
        let text = text.split_once('$').and_then(|(_, text)| text.split_once('#'));
        Ok(text.map(|(text, _)| text.to_owned()).unwrap_or_default())
    }
}

/// A packet with its checksum.
fn framed(packet: &str) -> Vec<u8> {
    let sum = packet.bytes().fold(0_u8, u8::wrapping_add);
    format!("${packet}#{sum:02x}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTERS: &str = "\r\nCPU#0\r\nRAX=0000000000000000 RBX=ffffce98404a3c98\r\n\
        RIP=ffffffff89410cac RFL=00000082 [--S----] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n";

    #[test]
    fn registers_say_where_a_processor_is_and_whether_it_executes_its_kernel() {
        let at = |text: &str| At::parse(text).map(|at| (at.address, at.in_kernel));
        assert_eq!(at(REGISTERS), Some((0xffff_ffff_8941_0cac, true)));
        let waits = REGISTERS.replace("HLT=0", "HLT=1");
        assert_eq!(at(&waits), Some((0xffff_ffff_8941_0cac, false)));
        let program = REGISTERS.replace("CPL=0", "CPL=3");
        assert_eq!(at(&program), Some((0xffff_ffff_8941_0cac, false)));
        assert_eq!(at("X0=0000000000000000 PC=ffff800008010000"), None);
    }

    #[test]
    fn the_byte_is_written_as_it_was_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let answers = std::thread::spawn(move || {
            let mut received = String::new();
            for answer in ["+$OK#9a", "+$e9#9e", "+$OK#9a"] {
                let mut byte = [0];
                while !matches!(received.as_bytes(), [.., b'#', _, _]) {
                    theirs.read_exact(&mut byte).unwrap();
                    received.push(char::from(byte[0]));
                }
                received.push(' ');
                theirs.write_all(answer.as_bytes()).unwrap();
            }
            // The last answer is acknowledged, too.
            theirs.read_exact(&mut [0]).unwrap();
            received
        });
        Debugger(ours).renew(0, 0xffff_ffff_8941_0cac).unwrap();
        let received = answers.join().unwrap();
        assert_eq!(received, "$Hg1#e0 +$mffffffff89410cac,1#27 +$Mffffffff89410cac,1:e9#df ");
    }
}
