//! A ping-pong: sends one byte over TCP and waits for it to return, so that the sender waits for
//! the whole path.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::exits;
use crate::measure::nanoseconds;
use crate::number_argument;

/// Port of the answering side.
const PORT: u16 = 5301;
/// Max time of a round trip.
const PATIENCE: Duration = Duration::from_secs(60);

/// `serve` answers clients, one after another. Otherwise sends to an address for some seconds (`ADDRESS SECONDS
/// [KIND=COUNT]… [busy-us=N]`), and prints the number of round trips as JSON: before each byte it causes the given
/// exits, or is busy.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let usage = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "serve, or ADDRESS SECONDS [KIND=COUNT]… [busy-us=N]",
        )
    };
    let first = arguments.next().ok_or_else(usage)?;
    if first == "serve" {
        return serve();
    }
    let address = first.parse().map_err(|_| usage())?;
    let seconds = arguments.next().and_then(|word| word.parse().ok()).ok_or_else(usage)?;
    let before: Vec<Before> = arguments.map(Before::read).collect::<io::Result<_>>()?;
    let before_each = || before.iter().try_for_each(Before::happen);
    let start = Instant::now();
    let to = SocketAddr::new(address, PORT);
    let round_trips = send(to, Duration::from_secs(seconds), before_each)?;
    println!("{}", json!({ "round_trips": round_trips, "took_ns": nanoseconds(start.elapsed()) }));
    Ok(())
}

/// The activity before each byte.
enum Before {
    /// Exits, as in `exits`.
    Exits(String),
    /// A busy loop.
    Busy(Duration),
}

impl Before {
    fn read(text: String) -> io::Result<Self> {
        Ok(match number_argument::number(&text)? {
            ("busy-us", us) => Self::Busy(Duration::from_micros(us)),
            _ => Self::Exits(text),
        })
    }

    fn happen(&self) -> io::Result<()> {
        match self {
            Self::Exits(request) => exits::make_asked(request).map(drop),
            Self::Busy(time) => {
                let start = Instant::now();
                while start.elapsed() < *time {}
                Ok(())
            }
        }
    }
}

fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((std::net::Ipv4Addr::UNSPECIFIED, PORT))?;
    for stream in listener.incoming() {
        // A broken connection must not prevent the next one.
        let _ = answer(stream?);
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    prepare(&stream)?;
    let mut byte = [0];
    while stream.read(&mut byte)? > 0 {
        stream.write_all(&byte)?;
    }
    Ok(())
}

fn send(
    to: SocketAddr,
    time: Duration,
    before_each: impl Fn() -> io::Result<()>,
) -> io::Result<u64> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    prepare(&stream)?;
    let (start, mut round_trips, mut byte) = (Instant::now(), 0, [0]);
    while start.elapsed() < time {
        before_each()?;
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        round_trips += 1;
    }
    Ok(round_trips)
}

/// Sends bytes without delay, and limits the time of each wait.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_there_and_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| answer(listener.accept().unwrap().0).unwrap());
            assert!(send(address, Duration::from_millis(50), || Ok(())).unwrap() > 1);
        });
    }
}
