//! Connections of this machine to itself, if its kernel has the loopback transport.

use std::thread;

use super::*;

const WAIT: Duration = Duration::from_secs(1);

/// A connection of this machine to itself; `None`, with a message, if the kernel has no loopback
/// transport for vsock.
fn pair() -> Option<(Stream, Stream, Address)> {
    let listener = match Listener::bind(PORT_ANY) {
        Ok(listener) => listener,
        Err(error) => {
            testkit::skip!("no vsock here: {error}");
            return None;
        }
    };
    let port = listener.address().unwrap().port;
    assert_ne!(port, PORT_ANY);
    let client = match Stream::connect(Address { cid: CID_LOCAL, port }, WAIT) {
        Ok(client) => client,
        Err(error) => {
            testkit::skip!("no loopback for vsock here: {error}");
            return None;
        }
    };
    let (server, from) = listener.accept().unwrap();
    assert_eq!(client.peer().unwrap(), Address { cid: CID_LOCAL, port });
    Some((client, server, from))
}

#[test]
fn bytes_go_both_ways_until_an_end() {
    let Some((mut client, mut server, from)) = pair() else { return };
    assert_eq!(from.cid, CID_LOCAL);
    assert_eq!(server.peer().unwrap(), from);
    let echo = thread::spawn(move || {
        let mut all = Vec::new();
        server.read_to_end(&mut all).unwrap();
        server.write_all(&all).unwrap();
    });
    let sent: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    client.write_all(&sent).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    client.read_to_end(&mut back).unwrap();
    assert_eq!(back, sent);
    echo.join().unwrap();
}

#[test]
fn a_read_waits_no_longer_than_it_may() {
    let Some((mut client, _server, _)) = pair() else { return };
    client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let error = client.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_connection_to_nobody_fails_in_time() {
    let before = Instant::now();
    // On any machine, port 4294967294 has no listener.
    let to = Address { cid: CID_LOCAL, port: u32::MAX - 1 };
    let error = Stream::connect(to, Duration::from_millis(500)).unwrap_err();
    assert!(before.elapsed() < 10 * WAIT, "{error}");
}

#[test]
fn this_machines_id_is_no_reserved_one() {
    match local_cid() {
        Ok(cid) => assert!(cid > CID_HOST, "{cid}"),
        Err(error) => testkit::skip!("no CID here: {error}"),
    }
}

#[test]
fn connections_come_from_the_highest_free_privileged_ports() {
    let Ok(sockets) = (0..3).map(|_| socket(0)).collect::<io::Result<Vec<_>>>() else {
        return testkit::skip!("no vsock here");
    };
    let mut ports = Vec::new();
    for socket in &sockets {
        match bind_privileged(socket.as_fd()) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return testkit::skip!("no privileges here");
            }
            bound => bound.unwrap(),
        }
        ports.push(address_by(libc::getsockname, socket.as_fd()).unwrap().port);
    }
    assert!(ports.iter().all(|port| (512..1024).contains(port)), "{ports:?}");
    assert!(ports.windows(2).all(|pair| pair[0] > pair[1]), "{ports:?}");
}

#[test]
fn what_is_no_vsock_connection_has_no_such_peer() {
    let (here, _there) = UnixStream::pair().unwrap();
    assert_eq!(peer_of(here.as_fd()), None);
}
