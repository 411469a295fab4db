//! Copies that feeds report and that are no version of the Original (4.4): looked at again with what
//! is true now, then told to the operator, one alert for each pair of Archives.

use std::collections::BTreeMap;
use std::sync::Arc;

use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;

use super::Resolver;
use crate::alerts::RaisedCopyAlert;
use crate::blocking::run_blocking;
use crate::directory::ArchiveDirectory;
use crate::location_index::{CopyVerdict, SuspectCopy};
use crate::transport::ArchiveTransport;

impl<A: ArchiveTransport, R: ArchiveDirectory> Resolver<A, R> {
    /// Raises alerts for those of these Copies that are no version of the Original. Returns those
    /// on which the Archive of the Original has to be heard first.
    pub async fn check_copies(&self, suspects: Vec<SuspectCopy>) -> Vec<SuspectCopy> {
        let Some(index) = self.0.index.as_ref().map(|index| index.index.clone()) else { return Vec::new() };
        // A Copy of a new version may be reported before the version itself.
        index.sync().await;
        let (known, now) = (Arc::clone(&self.0.known), (self.0.clock)());
        let judged = run_blocking(move || {
            let archives = known.archives();
            let service = |id: ArchiveId| -> Option<Label> {
                archives.iter().find(|archive| archive.id == id).map(|archive| archive.service.clone())
            };
            let (mut pairs, mut unknown) = (BTreeMap::<_, Vec<String>>::new(), Vec::new());
            for suspect in suspects {
                match index.judge_copy(&suspect) {
                    Ok(CopyVerdict::Differs) => {
                        pairs.entry((suspect.original, suspect.copy)).or_default().push(suspect.label);
                    }
                    Ok(CopyVerdict::Unknown) => unknown.push(suspect),
                    Ok(CopyVerdict::Fits) | Err(_) => {}
                }
            }
            for ((original, copy), items) in pairs {
                if let (Some(original), Some(copy)) = (service(original), service(copy)) {
                    metrics::counter!("ibi_alerts_raised_total").increment(1);
                    known.record_copy_alert(&RaisedCopyAlert { original, copy, items }, now);
                }
            }
            unknown
        });
        judged.await.unwrap_or_default()
    }
}
