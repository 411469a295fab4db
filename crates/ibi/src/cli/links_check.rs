//! The arguments of `ibi archive links check`.

use std::time::Duration;

use clap::Args;

use crate::cli::Data;

/// Check whether the target URLs of items answer
///
/// Each target is asked for once: HEAD, and GET if that fails. One request at a time goes to a
/// server, with a pause between two; what its robots.txt disallows is skipped. A redirect is not
/// followed: it is reported as moved. Rerun an interrupted check to resume it. Exits with 1 if a
/// target failed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  ibi archive links check --data archive
  ibi archive links check --data archive --pause 10 --json | jq -r 'select(.outcome == \"failed\").item'")]
pub(crate) struct LinksCheck {
    #[command(flatten)]
    pub(crate) data: Data,
    /// Seconds between two requests to one server
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub(crate) pause: Duration,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Also ask servers on private and loopback addresses
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Begin a new check, though an earlier one was interrupted
    #[arg(long)]
    pub(crate) restart: bool,
    /// Print one JSON object per target
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    const SHAPE: &str = "a number of seconds from 0 to 3600, as in 1 or 0.5";
    let number: f64 = text.parse().map_err(|_| SHAPE)?;
    if (0.0..=3600.0).contains(&number) { Ok(Duration::from_secs_f64(number)) } else { Err(SHAPE) }
}
