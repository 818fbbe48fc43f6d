//! Copies files to and from this machine.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use labguest::wire::{MAX_PAYLOAD_BYTES, Message, Put};

use crate::failure::Failure;
use crate::ports::Port;

/// Writes a file from the `Data` that follows. After an error the rest is read and discarded.
pub(crate) fn receive(mut port: &Port, put: &Put) -> Result<Option<Message>, Failure> {
    let mut file = create(put);
    loop {
        match labguest::wire::read(&mut port)? {
            Message::Data(bytes) => {
                if let Ok(open) = &mut file
                    && let Err(error) = open.write_all(&bytes)
                {
                    file = Err(error);
                }
            }
            Message::End => break,
            other => return Ok(Some(other)),
        }
    }
    file.map_err(|error| Failure::Request(format!("cannot write {}: {error}", put.path)))?;
    labguest::wire::write(&mut port, &Message::End).map_err(Failure::channel)?;
    Ok(None)
}

fn create(put: &Put) -> std::io::Result<File> {
    if let Some(folder) = Path::new(&put.path).parent() {
        fs::create_dir_all(folder)?;
    }
    let file = File::create(&put.path)?;
    file.set_permissions(fs::Permissions::from_mode(put.mode))?;
    Ok(file)
}

/// Sends a file.
pub(crate) fn send(mut port: &Port, path: &str) -> Result<Option<Message>, Failure> {
    let failed = |error| Failure::Request(format!("cannot read {path}: {error}"));
    let mut file = File::open(path).map_err(failed)?;
    let mut buffer = vec![0; MAX_PAYLOAD_BYTES];
    loop {
        let read = file.read(&mut buffer).map_err(failed)?;
        let Some(bytes) = buffer.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        labguest::wire::write(&mut port, &Message::Data(bytes.to_vec()))
            .map_err(Failure::channel)?;
    }
    labguest::wire::write(&mut port, &Message::End).map_err(Failure::channel)?;
    Ok(None)
}
