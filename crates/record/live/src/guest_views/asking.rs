//! The thread that queries a guest's agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::wire::{GuestView, Message, ViewRequest};
use channel::{Control, HostAddress, session_number};
use os::confine::{Confined, apart};
use os::waits::{Deadline, Wait};
use vms::GuestAddress;

use crate::guest_views::question::{Next, Question};

/// Max time to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Max time for an agent to answer: it reads all threads of a busy machine.
const ANSWER: Duration = Duration::from_secs(10);
/// Time between a failure and the next attempt.
const BEFORE_NEXT_TRY: Duration = Duration::from_secs(5);
/// Max time without a message to an agent, which drops a silent host after two minutes.
const SILENCE: Duration = Duration::from_secs(30);

/// Queries one guest.
#[derive(Debug)]
pub(crate) struct Asking {
    /// The name that the user gave.
    requested_name: String,
    question: Arc<Question>,
    most_tasks: u16,
}

impl Asking {
    /// Starts the thread, which ends when its receiver does.
    ///
    /// # Errors
    /// When a thread can't be started.
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
        // The VM may have been restarted meanwhile.
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

    /// Requests views on demand, until the receiver ends.
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

    /// Requests one view; `gone` is the error if the agent has disconnected.
    fn view(&self, control: &mut Control, session: u64, gone: &str) -> io::Result<GuestView> {
        let wait = Wait::until(Deadline::after(ANSWER));
        let request = Message::AskView(ViewRequest { tasks: self.most_tasks });
        control.ask(session, &request, wait, gone, |message| match message {
            Message::View(view) => Some(*view),
            _ => None,
        })
    }
}
