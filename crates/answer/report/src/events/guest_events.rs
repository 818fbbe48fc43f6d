//! Prints events that guests sent by hypercall, as the guests' own recordings would show them.

use std::borrow::Cow;
use std::io::{self, Write};

use analyses::hypertrace::{Carrier, GuestEvent, GuestEventSink, VcpuThread};
use hypertrace::{Call, Event, Interrupt, Kind, Mark, Syscall, Task, Wake};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::text::{name_part, thread_part};

/// The format of such events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestEventStyle {
    /// A text line, laid out like those of other events, with nanoseconds.
    Text,
    /// One JSON object per line.
    Jsonl,
}

/// Writes guests' events, one per line.
#[derive(Debug)]
pub struct GuestEventWriter<W> {
    out: W,
    style: GuestEventStyle,
    /// By vCPU thread, the name of its guest.
    machines: FxHashMap<VcpuThread, String>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
    written: u64,
}

impl<W: Write> GuestEventWriter<W> {
    /// Writes to `out`; a guest that is not in `machines` is named `guest`.
    pub fn new(
        out: W,
        style: GuestEventStyle,
        machines: impl IntoIterator<Item = (VcpuThread, String)>,
    ) -> Self {
        Self { out, style, machines: machines.into_iter().collect(), error: None, written: 0 }
    }

    /// The number of lines written.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self) -> io::Result<u64> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.out.flush()?;
        Ok(self.written)
    }

    fn write(&mut self, from: VcpuThread, event: &GuestEvent, by: &Carrier) -> io::Result<()> {
        let line = Line::new(event);
        match self.style {
            GuestEventStyle::Text => line.text(&mut self.out),
            GuestEventStyle::Jsonl => {
                let machine = self.machines.get(&from).map_or("guest", String::as_str);
                line.json(machine, by, &mut self.out)
            }
        }
    }
}

impl<W: Write + Send> GuestEventSink for GuestEventWriter<W> {
    fn event(&mut self, from: VcpuThread, event: &GuestEvent, by: &Carrier) {
        if self.error.is_some() {
            return;
        }
        match self.write(from, event, by) {
            Ok(()) => self.written += 1,
            Err(error) => self.error = Some(error),
        }
    }
}

/// The content of a line.
struct Line {
    stamp_ns: u64,
    cpu: Option<u16>,
    running: Option<Task>,
    event: &'static str,
    /// Names and values as in the kernel's event; lost values are null.
    fields: Vec<(&'static str, Value)>,
    text: String,
    /// Whether the time is an upper bound.
    at_latest: bool,
    /// See [`Event::late_ns`].
    late_ns: Option<u64>,
}

impl Line {
    fn new(event: &GuestEvent) -> Self {
        match event {
            GuestEvent::Event(event) => Self::of_event(event),
            GuestEvent::Mark(Mark { stamp_ns, text }, cpu) => Self {
                stamp_ns: *stamp_ns,
                cpu: *cpu,
                running: None,
                event: "hyperscope:mark",
                fields: vec![("text", json!(text))],
                text: text.clone(),
                at_latest: false,
                late_ns: None,
            },
        }
    }

    fn of_event(event: &Event) -> Self {
        let (name, fields, text) = match &event.kind {
            Kind::Switch { state, next } => {
                let (from, to) = (event.running, *next);
                let mut fields = task_fields(["prev_comm", "prev_pid", "prev_prio"], from);
                fields.push(("prev_state", json!(state.raw())));
                fields.extend(task_fields(["next_comm", "next_pid", "next_prio"], to));
                let text = format!("{} {} ==> {}", task(from), state.letter(), task(to));
                ("sched:sched_switch", fields, text)
            }
            Kind::Wake { wake, task: woken, target_cpu } => {
                let name = match wake {
                    Wake::Waking => "sched:sched_waking",
                    Wake::Wakeup => "sched:sched_wakeup",
                    Wake::New => "sched:sched_wakeup_new",
                };
                let mut fields = task_fields(["comm", "pid", "prio"], *woken);
                fields.push(("target_cpu", json!(target_cpu)));
                (name, fields, format!("{} CPU:{target_cpu:03}", task(*woken)))
            }
            Kind::Interrupt { irq, what: Interrupt::Entry(name) } => {
                let name = text_of(name.split(|&byte| byte == 0).next().unwrap_or_default());
                let text = format!("irq={irq} name={name}");
                ("irq:irq_handler_entry", vec![("irq", json!(irq)), ("name", json!(name))], text)
            }
            Kind::Interrupt { irq, what: Interrupt::Exit { handled } } => {
                let event = if *handled { "handled" } else { "unhandled" };
                let fields = vec![("irq", json!(irq)), ("ret", json!(u8::from(*handled)))];
                ("irq:irq_handler_exit", fields, format!("irq={irq} ret={event}"))
            }
            Kind::Syscall { number, what: Syscall::Enter } => {
                ("raw_syscalls:sys_enter", vec![("id", json!(number))], format!("NR {number}"))
            }
            Kind::Syscall { number, what: Syscall::Exit(ret) } => {
                let fields = vec![("id", json!(number)), ("ret", json!(ret))];
                ("raw_syscalls:sys_exit", fields, format!("NR {number} = {ret}"))
            }
            Kind::Call { address, name: function, what } => {
                let name = match what {
                    Call::Entry => "hyperscope:function_entry",
                    Call::Exit => "hyperscope:function_exit",
                };
                let function = function.as_ref().map(|name| text_of(name.as_bytes()));
                let plain = || address.map_or("?".into(), |address| format!("{address:#x}"));
                let text = function.as_ref().map_or_else(plain, |name| name.clone().into_owned());
                (name, vec![("ip", json!(address)), ("function", json!(function))], text)
            }
        };
        let (stamp_ns, cpu, running) = (event.stamp_ns, Some(event.cpu), event.running);
        let (at_latest, late_ns) = (event.at_latest, event.late_ns);
        Self { stamp_ns, cpu, running, event: name, fields, text, at_latest, late_ns }
    }

    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let running = match &self.running {
            Some(task) if task.pid == 0 => thread_part("<idle>", 0),
            Some(task) => thread_part(&text_of(task.comm()), task.pid),
            None => format!("{:>22}", "<...>-?    ").into_bytes().into(),
        };
        out.write_all(&running)?;
        match self.cpu {
            Some(cpu) => write!(out, " [{cpu:03}] ")?,
            None => out.write_all(b" [???] ")?,
        }
        let (seconds, ns) = (self.stamp_ns / 1_000_000_000, self.stamp_ns % 1_000_000_000);
        write!(out, "{seconds:>5}.{ns:09}: ")?;
        let name = self.event.rsplit(':').next().unwrap_or_default();
        out.write_all(&name_part(name))?;
        let mut text = self.text.clone().into_bytes();
        printable::escape_event(&mut text, 0);
        text.push(b'\n');
        out.write_all(&text)
    }

    fn json(&self, machine: &str, by: &Carrier, out: &mut dyn Write) -> io::Result<()> {
        let fields: serde_json::Map<String, Value> =
            self.fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut line = json!({
            "ts_ns": self.stamp_ns,
            "machine": machine,
            "level": 1,
            "cpu": self.cpu,
            "pid": self.running.map(|task| task.pid),
            "comm": self.running.map(|task| text_of(task.comm()).into_owned()),
            "event": self.event,
            "fields": fields,
        });
        if self.at_latest {
            line["at_latest"] = json!(true);
        }
        if let Some(late_ns) = self.late_ns {
            line["hypercall_late_ns"] = json!(late_ns);
        }
        if *by != Carrier::default() {
            line["hypercall_ns"] = json!(by.overhead_ns);
            line["hypercall_rip"] = json!(by.guest_rip);
        }
        writeln!(out, "{}", printable::json(&line.to_string()))
    }
}

fn task_fields(names: [&'static str; 3], task: Option<Task>) -> Vec<(&'static str, Value)> {
    let [comm, pid, prio] = names;
    let name = task.map(|task| text_of(task.comm()).into_owned());
    vec![
        (comm, json!(name)),
        (pid, json!(task.map(|task| task.pid))),
        (prio, json!(task.map(|task| task.prio))),
    ]
}

/// A task as the kernel prints it: `name:pid [priority]`.
fn task(task: Option<Task>) -> String {
    let Some(task) = task else { return "?".to_owned() };
    format!("{}:{} [{}]", text_of(task.comm()), task.pid, task.prio)
}

/// A guest's text; it is made printable when a line is written.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
