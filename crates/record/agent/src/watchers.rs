//! Hosts that watch this machine's view of itself, each on its own connection. They don't disturb a recording.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::wire::{GuestView, Message};
use channel::{Control, Received};
use os::confine::Confined;
use os::waits::Wait;

use crate::view::Before;

/// Max concurrent watchers.
const MAX_WATCHERS: usize = 4;
/// Max time without a question.
const SILENCE: Duration = Duration::from_secs(120);
/// Min time between two views: each reads all threads of this machine.
const BETWEEN: Duration = Duration::from_millis(100);

/// The viewers.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Arc<()>);

impl Watchers {
    /// Answers a watcher in a new thread until it disconnects; returns the connection if there are too many watchers.
    /// The first answer has no figures: counting starts with it.
    pub(crate) fn begin(&self, control: Control, session: u64) -> Result<(), Control> {
        if Arc::strong_count(&self.0) > MAX_WATCHERS {
            return Err(control);
        }
        let is_there = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(move || {
            // The files that it reads are public.
            Confined::WORKER.enter();
            // The watcher may have disconnected.
            let _ = answer(control, session);
            drop(is_there);
        });
        // Without a thread the connection is closed, which the watcher sees.
        drop(thread);
        Ok(())
    }
}

fn answer(mut control: Control, session: u64) -> io::Result<()> {
    let mut before = Before::now()?;
    let ready = GuestView { agent_cpu_ns: sys::process_cpu_ns(), ..GuestView::default() };
    control.send(session, &Message::View(Box::new(ready)))?;
    loop {
        std::thread::sleep(BETWEEN);
        match control.receive(Wait::at_most(SILENCE))? {
            Received::Message(message_session, Message::AskView(request))
                if message_session == session =>
            {
                let view = before.view(request.tasks.into())?;
                control.send(session, &Message::View(Box::new(view)))?;
            }
            Received::Message(..) => {}
            Received::Timeout | Received::Closed => return Ok(()),
        }
    }
}
