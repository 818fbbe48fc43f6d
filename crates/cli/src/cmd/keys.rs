//! `hyperscope keys`: makes a machine's key and certificate for TLS.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use printable::messages;
use rcgen::{CertificateParams, DnType, KeyPair};

use crate::args::keys::KeysArgs;
use command::verb::{Memory, Range, VerbArgs};

impl VerbArgs for KeysArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &KeysArgs) -> anyhow::Result<()> {
    let key = KeyPair::generate().context("cannot generate a key")?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, args.name.as_str());
    let certificate = params.self_signed(&key).context("cannot create a certificate")?;
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot create {}", args.output.display()))?;
    let file = |end: &str| args.output.join(format!("{}.{end}", args.name));
    let (identity, public) = (file("pem"), file("crt"));
    write(&identity, 0o600, &(certificate.pem() + &key.serialize_pem()))?;
    write(&public, 0o644, &certificate.pem())?;
    writeln!(
        messages(),
        "hyperscope: keep {} secret on {}; copy {} to its peers",
        identity.display(),
        args.name,
        public.display()
    )?;
    Ok(())
}

/// Writes a new file; refuses an existing one.
fn write(path: &Path, mode: u32, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}
