//! Arguments of `keys`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `keys`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope keys host -o /etc/hyperscope\n  \
    hyperscope keys web\n\n\
NAME.pem holds a certificate and its key: it is that machine's identity.pem, and for nobody else.\n\
NAME.crt holds the certificate alone: it goes into the other machines' peers.pem, which may hold\n\
many, one after the other.")]
pub(crate) struct KeysArgs {
    /// The machine's name, for people
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The folder for the files
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
}
