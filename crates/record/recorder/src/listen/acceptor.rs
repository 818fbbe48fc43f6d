//! Accepts connections: an agent's control stream, or one of its page streams.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use channel::wire::Message;
use channel::{Arrival, Arrivals};
use os::waits::{Signal, Wait};

use super::Shared;

/// The longest single wait; nothing happens in between.
const LOOK: Duration = Duration::from_secs(60);
/// How long to wait after an error of the system while accepting connections.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// Takes connections until all is over, and hands on those that say what they want: it is confined,
/// and may not do that itself.
pub(super) fn watch(mut arrivals: Arrivals, stop: &Signal, arrived: &SyncSender<Arrival>) {
    let early = [stop.fd()];
    while !stop.is_set() {
        match arrivals.next(Wait::at_most(LOOK).or(&early)) {
            Ok(Some(arrival)) => {
                // Whoever takes them is there as long as this.
                let _ = arrived.send(arrival);
            }
            Ok(None) => {}
            Err(_) => thread::sleep(AFTER_ERROR),
        }
    }
}

/// Gives an arrival what it came for.
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
