//! The resolver's view of the registry.

use std::sync::Arc;

use ibi_id::Label;

use crate::alerts::{RaisedAlert, RaisedClaim, RaisedCopyAlert};
use crate::archive::RegisteredArchive;
use crate::registry::Registry;
use ibi_store::registry::AlertEvidence;

/// The resolver's view of the registry: a trait, so that tests can replace it.
pub trait ArchiveDirectory: Send + Sync + 'static {
    /// All Archives, including retired ones: the same slice as long as nothing has changed.
    fn archives(&self) -> Arc<[Arc<RegisteredArchive>]>;
    /// Stores an alert until it is resolved by hand. May block on the disk.
    fn record_alert(&self, suspected: &RaisedAlert, now: i64);
    /// Stores an alert about Copies until it is resolved by hand. May block on the disk.
    fn record_copy_alert(&self, _found: &RaisedCopyAlert, _now: i64) {}
    /// Adds evidence to an alert, by service label. May block on the disk.
    fn add_evidence(&self, _suspected: &RaisedAlert, _told: &[(String, AlertEvidence)]) {}
}

impl ArchiveDirectory for Registry {
    fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
        self.archives()
    }

    fn record_alert(&self, suspected: &RaisedAlert, now: i64) {
        let item = alert_item_name(suspected);
        let claims = suspected.claims.iter().map(|RaisedClaim { service, url, timestamp, seen }| {
            let (url, timestamp) = (url.clone(), timestamp.clone());
            let archive = service.to_string();
            ibi_store::registry::AlertClaim {
                archive,
                url,
                timestamp,
                seen: *seen,
                evidence: None,
                copies: Vec::new(),
            }
        });
        if let Err(error) = self.raise_alert(&item, &claims.collect::<Vec<_>>(), now) {
            tracing::error!(%error, item, "an alert could not be kept");
        }
    }

    fn record_copy_alert(&self, found: &RaisedCopyAlert, now: i64) {
        let RaisedCopyAlert { original, copy, items } = found;
        let claim = |service: &Label, copies: &[String]| ibi_store::registry::AlertClaim {
            archive: service.to_string(),
            url: None,
            timestamp: None,
            seen: now,
            evidence: None,
            copies: copies.to_vec(),
        };
        // No label has a space: this is the alert of no item.
        let name = format!("copies {original} {copy}");
        if let Err(error) = self.raise_alert(&name, &[claim(original, &[]), claim(copy, items)], now) {
            tracing::error!(%error, name, "an alert could not be kept");
        }
    }

    fn add_evidence(&self, suspected: &RaisedAlert, told: &[(String, AlertEvidence)]) {
        let item = alert_item_name(suspected);
        if let Err(error) = self.add_evidence(&item, told) {
            tracing::error!(%error, item, "the evidence of an alert could not be kept");
        }
    }
}

/// One name for an item, whatever forms are known: its repository label if there is one; without
/// any label, what was requested.
pub(crate) fn alert_item_name(suspected: &RaisedAlert) -> String {
    let labels = suspected.item.labels();
    let repository = labels.iter().find(|label| matches!(label, Label::Repository(_)));
    repository.or(labels.first()).map_or_else(|| suspected.asked.clone(), Label::to_string)
}

#[cfg(test)]
mod tests {
    use ibi_protocol::LabelForms;

    use super::*;
    use crate::registry::ResolverSettings;

    #[test]
    fn an_alert_is_kept_in_the_registry() {
        let folder = tempfile::tempdir().unwrap();
        let service: Label = "J8LNKB5R7W/3FUQHC5".parse().unwrap();
        let settings =
            ResolverSettings { public_url: "http://urlib.net".to_owned(), service: service.clone() };
        let registry = Registry::create(folder.path(), &settings).unwrap();
        let claim = |seen| RaisedClaim { service: service.clone(), url: None, timestamp: None, seen };
        let item = LabelForms::new(["a.br/b/2009/02.16.17.46".parse().unwrap()]);
        for now in [7, 8] {
            let (item, asked) = (item.clone(), "a.br/b/2009/02.16.17.46".to_owned());
            ArchiveDirectory::record_alert(
                &registry,
                &RaisedAlert { item, asked, claims: vec![claim(now)] },
                now,
            );
        }
        let alerts = registry.alerts(false).unwrap();
        assert_eq!((alerts.len(), alerts[0].times, alerts[0].claims[0].seen), (1, 2, 8));
        assert_eq!(ArchiveDirectory::archives(&registry).len(), 0);
    }

    /// One alert for each pair of Archives, however many copies differ.
    #[test]
    fn clause_4_4_alerts_about_copies_are_grouped_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let service: Label = "J8LNKB5R7W/3FUQHC5".parse().unwrap();
        let settings = ResolverSettings { public_url: "http://urlib.net".to_owned(), service };
        let registry = Registry::create(folder.path(), &settings).unwrap();
        let archive = |name: &str| format!("{name}.br/b/2009/02.16.17.46").parse::<Label>().unwrap();
        for number in 0..100 {
            let items = vec![format!("a.br/n{number}/2009/02.16.17.46")];
            let (original, copy) = (archive("a"), archive("b"));
            ArchiveDirectory::record_copy_alert(&registry, &RaisedCopyAlert { original, copy, items }, 7);
        }
        let alerts = registry.alerts(false).unwrap();
        assert_eq!((alerts.len(), alerts[0].times, alerts[0].claims.len()), (1, 100, 2));
        assert_eq!(alerts[0].claims[1].copies.len(), ibi_store::registry::MAX_ALERT_COPIES);
        let shown = crate::api_view::AlertView::new(&registry, &alerts[0]);
        assert_eq!((shown.kind, shown.item.as_str()), ("copies-differ", "a.br/n0/2009/02.16.17.46"));
    }

    #[test]
    fn an_item_has_one_name_whatever_is_known_of_it() {
        let suspected = |labels: &[&str]| RaisedAlert {
            item: LabelForms::new(labels.iter().map(|label| label.parse().unwrap())),
            asked: "8JMKD3MGP8W/35MME4E+(pt)".to_owned(),
            claims: Vec::new(),
        };
        let (ibip, rep) = ("8JMKD3MGP8W/35MME4E", "a.br/b/2009/02.16.17.46");
        assert_eq!(alert_item_name(&suspected(&[ibip, rep])), rep);
        assert_eq!(alert_item_name(&suspected(&[rep])), rep);
        assert_eq!(alert_item_name(&suspected(&[ibip])), ibip);
        assert_eq!(alert_item_name(&suspected(&[])), "8JMKD3MGP8W/35MME4E+(pt)");
    }
}
