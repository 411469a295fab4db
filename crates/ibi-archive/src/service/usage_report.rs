//! Reports of resolvers: redirects that they made without asking (clause 4.4).

use ibi_protocol::ContentType;
use ibi_store::service::UsageCount;
use serde::Deserialize;

use crate::ArchiveError;
use crate::archive::Holdings;
use crate::service::{Statistics, StatisticsEvent};

/// Limits of a report.
const MAX_INDEX_NAME_BYTES: usize = 64;
const MAX_REPORT_COUNTS: usize = 10_000;

/// A report of redirects that a resolver made without asking.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `index`, `sequence` and `counts`")]
pub struct ReceivedUsageReport {
    /// The name of the resolver's index.
    index: String,
    /// Its number: the reports of each index have increasing ones.
    sequence: u64,
    counts: Vec<ReceivedUsageCount>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceivedUsageCount {
    day: String,
    ibi: String,
    contenttype: ContentType,
    robot: bool,
    times: u64,
}

impl ReceivedUsageReport {
    /// Whether the report is within its limits.
    pub fn check_size(&self) -> Result<(), &'static str> {
        match self.index.len() <= MAX_INDEX_NAME_BYTES && self.counts.len() <= MAX_REPORT_COUNTS {
            true => Ok(()),
            false => Err("the report is too long"),
        }
    }

    /// Counts the report of a resolver, unless it was counted before. Returns whether it was new.
    pub fn count(
        self,
        resolver: &str,
        holdings: &Holdings,
        statistics: &Statistics,
    ) -> Result<bool, ArchiveError> {
        let count = |count: ReceivedUsageCount| {
            let (holding, _) = holdings.find_bare(&count.ibi).ok()?;
            let is_day = count.day.len() == 10 && count.day.bytes().all(|c| c.is_ascii_digit() || c == b'-');
            is_day.then(|| UsageCount {
                path: holding.path,
                contenttype: count.contenttype.as_str().to_owned(),
                day: count.day,
                what: StatisticsEvent::Resolution.name().to_owned(),
                robots: count.robot,
                times: count.times,
            })
        };
        let counts: Vec<UsageCount> = self.counts.into_iter().filter_map(count).collect();
        statistics.add_report(&format!("{resolver} {}", self.index), self.sequence, &counts)
    }
}
