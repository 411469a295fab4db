//! How much a client may ask for.

use std::time::Duration;

/// Bounds on connections and requests; what lies beyond is refused or cut off, so that nobody starves the others.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Connections at a time from one address (of IPv6, from one /64).
    pub connections_of_one: usize,
    /// Bytes of a request's head.
    pub head: usize,
    /// Until a head is there, whole; also how long a connection may be idle.
    pub head_time: Duration,
    /// How long a client may be slower than [`Limits::body_rate`] in taking what it asked for.
    pub write_time: Duration,
    /// Until the next piece of a body is there.
    pub body_time: Duration,
    /// Bytes of a body a second, at least, either way.
    pub body_rate: u64,
    /// How long requests that were begun may go on after being told to stop.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_of_one: 1024,
            head: 32 << 10,
            head_time: Duration::from_secs(10),
            write_time: Duration::from_secs(30),
            body_time: Duration::from_secs(15),
            body_rate: 1024,
            drain_time: Duration::from_secs(30),
        }
    }
}
