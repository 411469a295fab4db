//! Arguments of `ibi archive links check`.

use std::time::Duration;

use clap::Args;

use crate::cli::DataArgs;
use crate::cli::outgoing::TrustArgs;

/// Check whether the target URLs of items respond
///
/// Requests each target once: with HEAD, and with GET if that fails. Sends one request at a time to
/// a server, with a pause in between, and skips what its robots.txt disallows. Redirects are
/// reported as moved, not followed. Rerun the command to resume an interrupted check. Exits with 1
/// if a target failed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive links check --data archive
  ibi archive links check --data archive --pause 10 --json | jq -r 'select(.outcome == \"failed\").item'")]
pub(crate) struct LinksCheckArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Seconds between two requests to the same server
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) pause: Duration,
    /// Seconds to wait for a response
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Also contact servers on private and loopback addresses
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    /// Start over instead of resuming an interrupted check
    #[arg(long)]
    pub(crate) restart: bool,
    /// Print one JSON object per target
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    const SECONDS_FORMAT_HINT: &str = "expected a number of seconds from 0 to 3600, such as 1 or 0.5";
    let number: f64 = text.parse().map_err(|_| SECONDS_FORMAT_HINT)?;
    if (0.0..=3600.0).contains(&number) {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err(SECONDS_FORMAT_HINT)
    }
}
