//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::record::some_time;

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope serve                                  on http://127.0.0.1:9797/metrics\n  \
    hyperscope serve --listen [::1]:9900 --max-series 20000\n  \
    hyperscope serve --listen 0.0.0.0:9797 --tls-cert c.pem --tls-key k.pem --token-file token\n  \
    hyperscope serve --textfile /var/lib/prometheus/node-exporter/hyperscope.prom --interval 15s\n\n\
Exits are added up inside this host's kernel, as by hyperscope top; counters begin at zero.\n\
/healthz says whether it works, / is a page for people. Without --token-file any user of this machine can read it.")]
pub(crate) struct ServeArgs {
    /// Answer at this address; one that other machines reach takes TLS and a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9797", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Speak TLS with these certificates, PEM, the server's own first
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "once")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key, PEM, in a file that other users can't read
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "once")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Answer only requests with "Authorization: Bearer TOKEN", the first line of this file that other users can't read
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print one interval's metrics and end, for the textfile collector of node_exporter
    #[arg(long, conflicts_with = "listen")]
    pub(crate) once: bool,
    /// Write the metrics into this file again and again in place of answering, for the textfile collector of node_exporter; it is
    /// removed at the end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "once", "tls_cert", "token_file"])]
    pub(crate) textfile: Option<PathBuf>,
    /// Read the kernel's sums at most so often; with --once: the interval; with --textfile: how often it is written
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "1s")]
    pub(crate) interval: Duration,
    /// Series that there may be; what has no room counts together, and the page says so
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(live::metrics::MIN_SERIES as i64..=10_000_000))]
    pub(crate) max_series: u32,
    /// Rows that the kernel keeps of an interval, 1.2 KiB each; what has no room is one row together
    #[arg(long, value_name = "NUMBER", default_value_t = 8192,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rows: u32,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "it is no address with a port, such as 127.0.0.1:9797 or [::1]:9797".to_owned()
    })
}

/// An address that only this machine reaches.
pub(super) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = address(text)?;
    if !address.ip().is_loopback() {
        return Err("other machines could reach it, and what is said is neither encrypted nor protected: listen on \
                    127.0.0.1 or [::1], and put a proxy with TLS in front of it"
            .to_owned());
    }
    Ok(address)
}
