//! Accepts connections: an agent's control stream, or one of its page streams.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use channel::wire::Message;
use channel::{Arrival, Arrivals};
use os::waits::{Signal, Wait};

use super::Shared;

/// Max time of a single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// Pause after a failed accept.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Accepts connections until the end, and passes on those with a first message: this thread is confined, and may not
/// handle them itself.
pub(super) fn watch(mut arrivals: Arrivals, stop: &Signal, arrived: &SyncSender<Arrival>) {
    let early = [stop.fd()];
    while !stop.is_set() {
        match arrivals.next(Wait::at_most(LOOK).or(&early)) {
            Ok(Some(arrival)) => {
                // The receiver lives as long as this thread.
                let _ = arrived.send(arrival);
            }
            Ok(None) => {}
            Err(_) => thread::sleep(AFTER_ERROR),
        }
    }
}

/// Handles a connection by its first message.
pub(super) fn admit(arrival: Arrival, shared: &Arc<Shared>) {
    let Arrival { control, first: (session, message), peer, .. } = arrival;
    match message {
        Message::GuestHello(_) => {
            let for_guest = Arc::clone(shared);
            let guest = thread::spawn(move || for_guest.record(control, peer));
            let mut guests = shared.guests.lock();
            guests.retain(|guest| !guest.is_finished());
            guests.push(guest);
        }
        Message::Attach(_) => {
            let taker = shared.takers.lock().get(&(peer.clone(), session)).cloned();
            match taker {
                Some(taker) => {
                    let stream = control.into_stream();
                    if let Some(Err(error)) = stream.map(|stream| taker.add(stream)) {
                        shared.refuse(&peer, error.to_string());
                    }
                }
                None => shared.refuse(&peer, "a page stream without a guest at this address"),
            }
        }
        _ => shared.refuse(&peer, "it is not an agent"),
    }
}
