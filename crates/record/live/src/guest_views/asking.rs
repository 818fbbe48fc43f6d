//! The thread that speaks to a guest's agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::wire::{GuestView, Message, ViewRequest};
use channel::{Control, HostAddress, session_number};
use os::confine::{Confined, apart};
use os::waits::{Deadline, Wait};
use vms::GuestAddress;

use crate::guest_views::question::{Next, Question};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an agent may take to answer: it looks at all threads of a machine that is busy.
const ANSWER: Duration = Duration::from_secs(10);
/// How long after a failure it is tried again.
const BEFORE_NEXT_TRY: Duration = Duration::from_secs(5);
/// Maximum time without a message to an agent, which drops a silent host after two minutes.
const SILENCE: Duration = Duration::from_secs(30);

/// Asks one guest.
#[derive(Debug)]
pub(crate) struct Asking {
    /// What the user calls it.
    requested_name: String,
    question: Arc<Question>,
    most_tasks: u16,
}

impl Asking {
    /// Starts the thread, which ends when its receiver does.
    ///
    /// # Errors
    /// When there can be no other thread.
    pub(crate) fn start(
        requested_name: String,
        question: Arc<Question>,
        most_tasks: u16,
    ) -> io::Result<()> {
        let asking = Self { requested_name, question, most_tasks };
        std::thread::Builder::new().name("guest-view".into()).spawn(move || asking.run())?;
        Ok(())
    }

    fn run(&self) {
        loop {
            match self.connect_and_ask() {
                Ok(()) => return,
                Err(error) => self.question.fail(error.to_string()),
            }
            if self.question.is_over_within(BEFORE_NEXT_TRY) {
                return;
            }
        }
    }

    fn connect_and_ask(&self) -> io::Result<()> {
        // The VM may have been started again meanwhile.
        let address = GuestAddress::find_by(
            &self.requested_name,
            &vms::running(),
            HostAddress::takes_several,
        );
        let address = address.map_err(io::Error::other)?;
        self.question.reached(&address);
        let mut control = Control::new(address.channel.connect_control(CONNECT)?);
        let session = session_number()?;
        apart(Confined::Reader, "views", || {
            self.view(
                &mut control,
                session,
                "it closed the channel without an answer: agents of the first releases have no views, and an agent with keys requires them (tls:, tls-vsock:)",
            )?;
            self.question.ready();
            self.answer(&mut control, session)
        })
    }

    /// Asks for views as they are wanted, until none is.
    fn answer(&self, control: &mut Control, session: u64) -> io::Result<()> {
        loop {
            match self.question.next(SILENCE) {
                Next::Ask(question) => {
                    let view = self.view(control, session, "its agent disconnected")?;
                    self.question.settle(question, view);
                }
                Next::Alive => control.send(session, &Message::Alive)?,
                Next::End => return Ok(()),
            }
        }
    }

    /// One view; what to say where there is none because the agent has gone.
    fn view(&self, control: &mut Control, session: u64, gone: &str) -> io::Result<GuestView> {
        let wait = Wait::until(Deadline::after(ANSWER));
        let request = Message::AskView(ViewRequest { tasks: self.most_tasks });
        control.ask(session, &request, wait, gone, |message| match message {
            Message::View(view) => Some(*view),
            _ => None,
        })
    }
}
