//! Why the agent can't do what it is there for.

use channel::AgentAddress;
use tracefs::TracefsError;

/// The agent's errors.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The kernel's tracing can't be used as asked.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// The channel can't be used.
    #[error("cannot use the channel {address}: {source}")]
    Channel {
        /// The channel.
        address: AgentAddress,
        /// What the system said.
        source: std::io::Error,
    },
    /// The channel failed while it was used.
    #[error("the channel failed: {0}")]
    Io(#[from] std::io::Error),
    /// What the host does with this guest's vCPUs can't be shown.
    #[error(transparent)]
    Steal(#[from] steal_viewer::StealError),
    /// The host asks for what makes no sense.
    #[error("{0}")]
    Refused(String),
}

/// The agent's results.
pub type Result<T> = std::result::Result<T, AgentError>;
