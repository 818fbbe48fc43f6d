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
Exits are summed inside this host's kernel, as by hyperscope top; counters start at zero. /healthz\n\
reports whether it works, and / is a readable page. Without --token-file, any user of this machine\n\
can read the metrics.")]
pub(crate) struct ServeArgs {
    /// Listen on this address; an address that other machines can reach needs TLS and a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9797", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Use TLS with these certificates, PEM, the server's own first
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "once")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's key, PEM, in a file that other users can't read
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "once")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Answer only requests with "Authorization: Bearer TOKEN", the first line of this file that other users can't read
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print the metrics of one interval and exit, for the textfile collector of node_exporter
    #[arg(long, conflicts_with = "listen")]
    pub(crate) once: bool,
    /// Instead of listening, rewrite this file at each interval, for the textfile collector of
    /// node_exporter; it is removed at the end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "once", "tls_cert", "token_file"])]
    pub(crate) textfile: Option<PathBuf>,
    /// Read the kernel's sums at most this often; with --once, the length of the interval; with
    /// --textfile, the time between writes
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "1s")]
    pub(crate) interval: Duration,
    /// Maximum number of series; the rest are summed together, and the page says so
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(live::metrics::MIN_SERIES as i64..=10_000_000))]
    pub(crate) max_series: u32,
    /// Rows that the kernel keeps per interval, 1.2 KiB each; the rest are summed in one row
    #[arg(long, value_name = "NUMBER", default_value_t = 8192,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rows: u32,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "not an address with a port, such as 127.0.0.1:9797 or [::1]:9797".to_owned())
}

/// An address that only this machine reaches.
pub(super) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = address(text)?;
    if !address.ip().is_loopback() {
        return Err("other machines could reach it, without encryption or authentication: listen on 127.0.0.1 or [::1], and put a TLS proxy in front"
            .to_owned());
    }
    Ok(address)
}
