//! Arguments of `keys`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `keys`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope keys host -o /etc/hyperscope\n  \
    hyperscope keys web\n\n\
NAME.pem holds a certificate and its key. Install it as identity.pem on that machine, and keep it\n\
secret. NAME.crt holds the certificate alone. Append it to peers.pem on the other machines.")]
pub(crate) struct KeysArgs {
    /// A readable name for the machine
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The folder for the files
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
}
