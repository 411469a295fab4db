//! Quotas of a server: the defaults, overridden by a file, overridden by options.

use std::path::Path;

use ibi_http::rate::RateQuotas;
use ibi_http::regular_file;

use crate::cli::quotas::{QuotaArgs, QuotaRule};
use crate::exit::CommandError;

/// Maximum size of a quota file.
const MAX_QUOTA_FILE_BYTES: u64 = 64 << 10;

/// Reads the quotas that the operator configured.
pub(super) fn read(options: &QuotaArgs) -> Result<RateQuotas, CommandError> {
    let from_file = options.quota_file.as_deref().map(rules_of).transpose()?.unwrap_or_default();
    let mut quotas = RateQuotas::default();
    let mut exempt = Vec::new();
    for rule in from_file.iter().chain(&options.quota) {
        match rule {
            QuotaRule::Quota(policy, quota) => quotas.set(*policy, *quota),
            QuotaRule::Exempt(range) => exempt.push(*range),
        }
    }
    quotas.exempt(move |ip| exempt.iter().any(|range| range.contains(ip)));
    Ok(quotas)
}

/// Parses one rule per line; `#` starts a comment.
fn rules_of(path: &Path) -> Result<Vec<QuotaRule>, CommandError> {
    let failed = |why: String| CommandError::Usage(format!("invalid quotas in {}: {why}", path.display()));
    let text = regular_file::read(path, MAX_QUOTA_FILE_BYTES).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()).enumerate();
    let rules = lines.filter(|(_, line)| !line.is_empty());
    rules.map(|(at, line)| line.parse().map_err(|why| failed(format!("line {}: {why}", at + 1)))).collect()
}
