//! Errors of the agent.

use channel::AgentAddress;
use tracefs::TracefsError;

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Tracing failed.
    #[error(transparent)]
    Tracefs(#[from] TracefsError),
    /// The channel can't be opened.
    #[error("cannot use the channel {address}: {source}")]
    Channel {
        address: AgentAddress,
        /// The system's error.
        source: std::io::Error,
    },
    /// The channel failed in use.
    #[error("the channel failed: {0}")]
    Io(#[from] std::io::Error),
    /// Showing the host's activity on this guest's vCPUs failed.
    #[error(transparent)]
    Steal(#[from] steal_viewer::StealError),
    /// The host's request is invalid.
    #[error("{0}")]
    Refused(String),
}

pub type Result<T> = std::result::Result<T, AgentError>;
