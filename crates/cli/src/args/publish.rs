//! Arguments of `publish`.

use std::time::Duration;

use clap::Args;

use super::record::some_time;

/// Arguments of `publish`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope publish --guest web                    until Ctrl-C\n  \
    hyperscope publish --guest web --guest db --for 1h\n  \
    hyperscope publish --guest web=shm:/dev/shm/web\n\n\
In each guest, run hyperscope-agent steal or hyperscope top --steal. A guest sees only its own vCPUs, \
    and only if it is named. Publishing needs root.")]
pub(crate) struct PublishArgs {
    /// Guest that receives the data of its vCPUs: a VM's name, or [NAME=]shm:FILE
    #[arg(long = "guest", value_name = "GUEST", required = true)]
    pub(crate) guests: Vec<String>,
    /// Publish new data at this interval
    #[arg(long, value_name = "TIME", value_parser = some_time, default_value = "100ms")]
    pub(crate) interval: Duration,
    /// Stop after this time: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) time: Option<Duration>,
}
