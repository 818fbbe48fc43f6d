//! Who comes in: an agent with its control stream, or one of its page streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use channel::{Control, Heard, Listener, Peer, Stream, Wait};
use wire::Message;

use super::{Shared, lock};

/// How long whoever connects may take to say who it is.
const FIRST_WORD: Duration = Duration::from_secs(2);
/// Connections at a time of which that is not known.
const MOST_STRANGERS: usize = 64;
/// How long one waits after a connection could not be taken: too many files are open.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Takes connections until all is over.
pub(super) fn watch(listener: &Listener, shared: &Arc<Shared>) {
    let strangers = Arc::new(AtomicUsize::new(0));
    while listener.wait(shared.stop.fd()).unwrap_or(false) {
        let Ok((stream, peer)) = listener.accept() else {
            thread::sleep(AFTER_ERROR);
            continue;
        };
        if strangers.fetch_add(1, Ordering::Relaxed) >= MOST_STRANGERS {
            strangers.fetch_sub(1, Ordering::Relaxed);
            // Closed without a word: there is no time for more.
            continue;
        }
        let (shared, strangers) = (Arc::clone(shared), Arc::clone(&strangers));
        thread::spawn(move || {
            let first = first_word(stream);
            strangers.fetch_sub(1, Ordering::Relaxed);
            let Some((control, session, message)) = first else { return };
            admit(control, session, &message, peer, &shared);
        });
    }
}

fn first_word(stream: Stream) -> Option<(Control, u64, Message)> {
    let mut control = Control::new(stream);
    match control.receive(Wait::at_most(FIRST_WORD)) {
        Ok(Heard::Message(session, message)) => Some((control, session, message)),
        _ => None,
    }
}

fn admit(control: Control, session: u64, message: &Message, peer: Peer, shared: &Arc<Shared>) {
    match message {
        Message::GuestHello(_) => {
            let for_guest = Arc::clone(shared);
            let guest = thread::spawn(move || for_guest.record(control, peer));
            let mut guests = lock(&shared.guests);
            guests.retain(|guest| !guest.is_finished());
            guests.push(guest);
        }
        Message::Attach(_) => {
            let taker = lock(&shared.takers).get(&(peer.clone(), session)).cloned();
            match taker {
                Some(taker) => {
                    let stream = control.into_stream();
                    if let Some(Err(error)) = stream.map(|stream| taker.add(stream)) {
                        shared.refuse(&peer, error.to_string());
                    }
                }
                None => shared.refuse(&peer, "a page stream of no guest that comes from there"),
            }
        }
        _ => shared.refuse(&peer, "it is no agent"),
    }
}
