//! Limits on connections and requests.

use std::time::Duration;

use crate::descriptors::DescriptorBudget;

/// Limits on connections and requests. Anything beyond them is refused or cut off, so that no
/// client can starve the others.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Maximum number of concurrent connections from one address (for IPv6, from one /64).
    pub connections_of_one: usize,
    /// Maximum size of a request head, in bytes.
    pub head: usize,
    /// Timeout for receiving a complete request head; also the idle timeout of a connection.
    pub head_time: Duration,
    /// How long a client may read a response more slowly than [`ServerLimits::body_rate`].
    pub write_time: Duration,
    /// Timeout for the next piece of a request body.
    pub body_time: Duration,
    /// Minimum transfer rate of a body in either direction, in bytes per second.
    pub body_rate: u64,
    /// Drain timeout: how long requests in progress may continue after a shutdown request.
    pub drain_time: Duration,
}

/// Maximum number of concurrent connections, however many descriptors there are.
const MAX_CONNECTIONS: usize = 4096;

impl ServerLimits {
    /// The default limits, with no more connections than the descriptor budget allows. One address
    /// may take half of them: when all slots are taken, newcomers evict connections of the address
    /// that holds the most.
    pub fn within(budget: DescriptorBudget) -> Self {
        let connections = budget.connections().min(MAX_CONNECTIONS);
        Self { connections, connections_of_one: connections.div_ceil(2), ..Self::default() }
    }
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: MAX_CONNECTIONS,
            connections_of_one: MAX_CONNECTIONS / 2,
            head: 32 << 10,
            head_time: Duration::from_secs(10),
            write_time: Duration::from_secs(30),
            body_time: Duration::from_secs(15),
            body_rate: 1024,
            drain_time: Duration::from_secs(30),
        }
    }
}
