//! Rate quotas on expensive requests.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use ibi_archive::access::AddressRange;
use ibi_http::rate::{RatePolicy, RateQuota};

#[derive(Args, Clone)]
pub(crate) struct QuotaArgs {
    /// Rate quota on expensive requests, such as `mint-token=100000/60` (count per seconds) or
    /// `list-address=off`; `exempt=RANGE` exempts clients; repeatable
    #[arg(long, value_name = "NAME=COUNT/SECONDS")]
    pub(crate) quota: Vec<QuotaRule>,
    /// File with one quota per line; reloaded on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) quota_file: Option<PathBuf>,
}

/// One quota rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuotaRule {
    /// A quota; `None` turns it off.
    Quota(RatePolicy, Option<RateQuota>),
    /// Clients without quotas.
    Exempt(AddressRange),
}

impl FromStr for QuotaRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(|| {
                format!("`{text}` is not a quota: expected NAME=COUNT/SECONDS, NAME=off or exempt=RANGE")
            })?;
        if name == "exempt" {
            return value.parse().map(Self::Exempt).map_err(|error| format!("exempt: {error}"));
        }
        let policy = name.parse()?;
        let quota = if value == "off" { None } else { Some(value.parse()?) };
        Ok(Self::Quota(policy, quota))
    }
}
