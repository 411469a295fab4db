//! The clock of a resolver, handed in so that tests can set it.

use std::sync::Arc;

/// Returns the seconds since the Unix epoch.
pub type ResolverClock = Arc<dyn Fn() -> i64 + Send + Sync>;
