//! Records the VM under the cursor while the screen continues, with this program's `record`, and makes a page with
//! its `report`.

mod place;

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use live::viewer::ChosenVm;
use printable::label;

use super::browser;
use command::running::Running;

/// Durations and timeouts.
#[derive(Clone, Copy, Debug)]
struct Times {
    record: Duration,
    /// Max extra time of a recorder, for its start and its final writes.
    besides: Duration,
    /// Timeout of a report.
    report: Duration,
    /// Time from the interrupt to the kill.
    grace: Duration,
}

impl Times {
    const DEFAULT: Self = Self {
        record: Duration::from_secs(10),
        besides: Duration::from_secs(30),
        report: Duration::from_secs(120),
        grace: Duration::from_secs(10),
    };
}

/// The recordings of a screen, one at a time.
#[derive(Debug)]
pub(super) struct Recordings {
    /// The program that records and reports.
    program: PathBuf,
    times: Times,
    /// Whether pages are opened in a browser.
    opens_pages: bool,
    step: Step,
    browser: Option<Child>,
    /// The result of each recording, printed after the screen.
    results: Vec<String>,
}

#[derive(Debug)]
enum Step {
    /// With the result of the previous recording, if any.
    Idle(Option<String>),
    Recording(Recording),
    Reporting(Reporting),
}

#[derive(Debug)]
struct Recording {
    vm: String,
    session: PathBuf,
    recorder: Running,
    /// When the recorder reported that it records.
    began: Option<Instant>,
}

#[derive(Debug)]
struct Reporting {
    vm: String,
    session: PathBuf,
    report: Running,
    /// A fault of the recording.
    complaint: Option<String>,
}

impl Recordings {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self::by(env::current_exe()?, Times::DEFAULT, true))
    }

    fn by(program: PathBuf, times: Times, opens_pages: bool) -> Self {
        let step = Step::Idle(None);
        Self { program, times, opens_pages, step, browser: None, results: Vec::new() }
    }

    /// Handles the key: begins a recording, or ends the running one. Also records the VM's guest, if it was
    /// requested.
    pub(super) fn press(&mut self, vm: Option<ChosenVm>, guest: Option<String>) {
        match &mut self.step {
            Step::Recording(recording) => recording.recorder.interrupt(),
            Step::Reporting(_) => {}
            Step::Idle(_) => {
                self.step = match vm {
                    Some(vm) => self.record(&vm, guest, place::session(&vm.name)),
                    None => Step::Idle(Some(
                        "no VM is selected: select a line of a VM, then press r".into(),
                    )),
                }
            }
        }
    }

    fn record(&mut self, vm: &ChosenVm, guest: Option<String>, session: PathBuf) -> Step {
        let times = self.times;
        let mut arguments: Vec<OsString> = vec![
            "record".into(),
            "--vm".into(),
            vm.process.to_string().into(),
            "--for".into(),
            format!("{}s", times.record.as_secs_f64()).into(),
            "-o".into(),
            session.clone().into(),
        ];
        if let Some(guest) = guest {
            arguments.extend(["--guest".into(), guest.into()]);
        }
        let at_most = times.record + times.besides;
        let vm = label(&vm.name);
        match Running::start(&self.program, arguments, at_most, times.grace) {
            Ok(recorder) => Step::Recording(Recording { vm, session, recorder, began: None }),
            Err(error) => self.failed(&vm, &format!("cannot start the recorder: {error}")),
        }
    }

    /// Continues after a program that has ended.
    pub(super) fn go_on(&mut self) {
        self.step = match std::mem::replace(&mut self.step, Step::Idle(None)) {
            Step::Recording(recording) => self.go_on_recording(recording),
            Step::Reporting(reporting) => self.go_on_reporting(reporting),
            idle @ Step::Idle(_) => idle,
        };
        // The browser must be waited for, or it stays a zombie.
        if self.browser.as_mut().is_some_and(|browser| !matches!(browser.try_wait(), Ok(None))) {
            self.browser = None;
        }
    }

    fn go_on_recording(&mut self, mut recording: Recording) -> Step {
        if recording.began.is_none() && recording.recorder.has_spoken() {
            recording.began = Some(Instant::now());
        }
        match recording.recorder.look() {
            Ok(None) => Step::Recording(recording),
            Ok(Some(status)) => self.report(recording, status.success()),
            Err(error) => self.failed(&recording.vm, &error.to_string()),
        }
    }

    /// Makes a report, also of an incomplete recording.
    fn report(&mut self, recording: Recording, is_whole: bool) -> Step {
        let Recording { vm, session, recorder, .. } = recording;
        let complaint = complaint(&recorder, is_whole);
        if !session.join("host.dat").exists() {
            let why = complaint
                .unwrap_or_else(|| "the recorder was stopped before it started".to_owned());
            return self.failed(&vm, &why);
        }
        let arguments: [OsString; 4] =
            ["report".into(), session.clone().into(), "-o".into(), page(&session).into()];
        match Running::start(&self.program, arguments, self.times.report, self.times.grace) {
            Ok(report) => Step::Reporting(Reporting { vm, session, report, complaint }),
            Err(error) => self.without_page(&vm, &session, &error.to_string()),
        }
    }

    fn go_on_reporting(&mut self, mut reporting: Reporting) -> Step {
        match reporting.report.look() {
            Ok(None) => Step::Reporting(reporting),
            Ok(Some(status)) => {
                let Reporting { vm, session, report, complaint: of_recording } = reporting;
                match complaint(&report, status.success()) {
                    Some(why) => self.without_page(&vm, &session, &why),
                    None => self.reported(&vm, &session, of_recording),
                }
            }
            Err(error) => self.without_page(&reporting.vm, &reporting.session, &error.to_string()),
        }
    }

    fn reported(&mut self, vm: &str, session: &Path, complaint: Option<String>) -> Step {
        let page = page(session);
        let mut result = format!("recorded {vm}: {}", page.display());
        if let Some(complaint) = complaint {
            result += &format!(" ({complaint})");
        }
        self.results.push(result.clone());
        if self.opens_pages {
            self.browser = browser::open(&page);
        }
        if self.browser.is_some() {
            result += ", opened in a browser";
        }
        Step::Idle(Some(result))
    }

    fn failed(&mut self, vm: &str, why: &str) -> Step {
        self.concluded(format!("{vm} was not recorded: {why}"))
    }

    fn without_page(&mut self, vm: &str, session: &Path, why: &str) -> Step {
        let (from, to) = (session.display(), page(session));
        self.concluded(format!(
            "recorded {vm}, without a page ({why}): hyperscope report {from} -o {}",
            to.display()
        ))
    }

    fn concluded(&mut self, result: String) -> Step {
        self.results.push(result.clone());
        Step::Idle(Some(result))
    }

    /// The notice on the screen.
    pub(super) fn notice(&self) -> Option<String> {
        match &self.step {
            Step::Idle(result) => result.clone(),
            Step::Recording(recording) => Some(recording.notice(self.times.record)),
            Step::Reporting(Reporting { vm, session, .. }) => {
                Some(format!("recorded {vm}: writing {}", page(session).display()))
            }
        }
    }

    /// Ends the running program in order. Returns the results of all recordings.
    pub(super) fn end(mut self) -> Vec<String> {
        match std::mem::replace(&mut self.step, Step::Idle(None)) {
            Step::Idle(_) => {}
            Step::Recording(mut recording) => {
                let ended = recording.recorder.end();
                let is_whole = ended.is_ok_and(|status| status.success());
                let Recording { vm, session, recorder, .. } = recording;
                if session.join("host.dat").exists() {
                    self.without_page(&vm, &session, "top ended");
                } else {
                    let why = complaint(&recorder, is_whole);
                    self.failed(&vm, &why.unwrap_or_else(|| "top ended".to_owned()));
                }
            }
            Step::Reporting(Reporting { vm, session, report, .. }) => {
                drop(report);
                self.without_page(&vm, &session, "top ended");
            }
        }
        self.results
    }
}

impl Recording {
    fn notice(&self, time: Duration) -> String {
        let (vm, to) = (&self.vm, self.session.display());
        if self.recorder.is_ending() {
            return format!("recording {vm}: stopping, into {to}");
        }
        let Some(began) = self.began else {
            return format!("recording {vm}: starting, into {to} (r stops it)");
        };
        let gone = began.elapsed().min(time).as_secs();
        format!("recording {vm}: {gone} of {} s, into {to} (r stops it)", time.as_secs())
    }
}

/// A program's failure, if any.
fn complaint(program: &Running, is_whole: bool) -> Option<String> {
    if program.is_late() {
        return Some("it took too long and was stopped".to_owned());
    }
    let line = || program.last_line().unwrap_or_else(|| "it printed nothing".to_owned());
    (!is_whole).then(line)
}

fn page(session: &Path) -> PathBuf {
    session.join("report.html")
}

#[cfg(test)]
mod tests;
