//! The file descriptor budget of this process.
//!
//! Sockets, open files and index connections share one limit (`RLIMIT_NOFILE`). Client connections
//! get what is left after a reserve, so that clients can never use up the descriptors needed to
//! read the store and to accept the operator's commands.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors reserved for index readers, journal, locks, listeners, log, and the operator's
/// commands.
const RESERVED_DESCRIPTORS: usize = 96;

/// Minimum number of client connections, however low the limit is.
const MIN_CONNECTIONS: usize = 16;

/// Minimum number of concurrent connections to other servers.
const MIN_OUTGOING_CONNECTIONS: usize = 8;

/// How many connections and files the descriptor limit of this process allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescriptorBudget {
    limit: usize,
}

impl DescriptorBudget {
    /// The budget under the current limit.
    pub fn current() -> Self {
        let limit = getrlimit(Resource::Nofile).current;
        Self { limit: limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX) }
    }

    /// Raises the soft limit to the hard limit and returns the resulting budget.
    pub fn raise() -> Self {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        if current != maximum
            && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        {
            tracing::warn!(error = %io::Error::from(error), "the limit of open files could not be raised");
        }
        Self::current()
    }

    /// The descriptor limit.
    pub fn limit(self) -> usize {
        self.limit
    }

    fn available(self) -> usize {
        self.limit.saturating_sub(RESERVED_DESCRIPTORS)
    }

    /// Maximum number of concurrent client connections: five eighths of the unreserved descriptors.
    /// A quarter is for files, which are open only while they are read or written.
    pub fn connections(self) -> usize {
        (self.available() / 8 * 5).max(MIN_CONNECTIONS)
    }

    /// Maximum number of concurrent connections to other servers; as many again may be kept idle.
    pub fn outgoing(self) -> usize {
        (self.available() / 16).max(MIN_OUTGOING_CONNECTIONS)
    }
}

/// A descriptor held in reserve: releasing it frees one when none are left.
#[derive(Debug)]
pub struct SpareDescriptor(Option<std::fs::File>);

impl SpareDescriptor {
    /// Opens a spare descriptor, if one is available.
    pub fn hold() -> Self {
        Self(std::fs::File::open("/dev/null").ok())
    }

    /// Releases it and returns whether it was held.
    pub fn release(&mut self) -> bool {
        self.0.take().is_some()
    }

    /// Reopens it after a release.
    pub fn hold_again(&mut self) {
        if self.0.is_none() {
            *self = Self::hold();
        }
    }
}

/// Whether the error means that the process or the system is out of descriptors or buffers.
pub fn is_exhausted(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhausted = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    exhausted.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_everything_else() {
        for limit in [0, 64, 256, 1024, 4096, 65_536, usize::MAX] {
            let budget = DescriptorBudget { limit };
            let taken = budget
                .connections()
                .saturating_add(budget.available() / 4)
                .saturating_add(budget.outgoing().saturating_mul(2))
                .saturating_add(RESERVED_DESCRIPTORS);
            assert!(limit < 256 || taken <= limit, "{limit}: {taken}");
            assert!(budget.connections() >= MIN_CONNECTIONS);
        }
        assert_eq!(DescriptorBudget { limit: 256 }.connections(), 100);
    }
}
