//! Hosts that look at how this machine sees itself, each on a connection of its own: side by side with whoever records
//! it, and in nobody's way.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::wire::{GuestView, Message};
use channel::{Control, Received};
use os::confine::Confined;
use os::waits::Wait;

use crate::view::Before;

/// Hosts that look at a time.
const MAX_WATCHERS: usize = 4;
/// How long one may ask for nothing.
const SILENCE: Duration = Duration::from_secs(120);
/// How soon after one view the next is taken, at the soonest: each looks at all threads of this machine.
const BETWEEN: Duration = Duration::from_millis(100);

/// The viewers.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Arc<()>);

impl Watchers {
    /// Answers what a host asks on a connection that began with its asking, in a thread of its own, as long as it
    /// asks; gives the connection back where there is no room. The first answer has no figures: it is counted from
    /// there.
    pub(crate) fn begin(&self, control: Control, session: u64) -> Result<(), Control> {
        if Arc::strong_count(&self.0) > MAX_WATCHERS {
            return Err(control);
        }
        let is_there = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(move || {
            // What it reads is open to everybody.
            Confined::WORKER.enter();
            // One that is gone has seen enough.
            let _ = answer(control, session);
            drop(is_there);
        });
        // Without a thread the connection is closed, which its host sees.
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
