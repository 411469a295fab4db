//! What a resolver needs of the registry.

use std::sync::Arc;

use ibi_id::Label;

use crate::alerts::{Claim, Suspected};
use crate::archive::Archive;
use crate::registry::Registry;
use ibi_store::registry::Evidence;

/// What a resolver needs of the registry: a trait, so that tests can play it.
pub trait Known: Send + Sync + 'static {
    /// All Archives, the retired too: the same slice as long as nothing has changed.
    fn archives(&self) -> Arc<[Arc<Archive>]>;
    /// Keeps an alert until it is resolved by hand. May wait for a disk.
    fn raise(&self, suspected: &Suspected, now: i64);
    /// Adds to an alert what Archives tell of the item, by the labels of their services. May wait for a disk.
    fn add_evidence(&self, _suspected: &Suspected, _told: &[(String, Evidence)]) {}
}

impl Known for Registry {
    fn archives(&self) -> Arc<[Arc<Archive>]> {
        self.archives()
    }

    fn raise(&self, suspected: &Suspected, now: i64) {
        let item = name(suspected);
        let claims = suspected.claims.iter().map(|Claim { service, url, timestamp, seen }| {
            let (url, timestamp) = (url.clone(), timestamp.clone());
            let archive = service.to_string();
            ibi_store::registry::Claim { archive, url, timestamp, seen: *seen, evidence: None }
        });
        if let Err(error) = self.raise(&item, &claims.collect::<Vec<_>>(), now) {
            tracing::error!(%error, item, "an alert could not be kept");
        }
    }

    fn add_evidence(&self, suspected: &Suspected, told: &[(String, Evidence)]) {
        let item = name(suspected);
        if let Err(error) = self.add_evidence(&item, told) {
            tracing::error!(%error, item, "the evidence of an alert could not be kept");
        }
    }
}

/// One name for an item, whatever forms of it are known: its repository's if there is one; without any, what was asked for.
pub(crate) fn name(suspected: &Suspected) -> String {
    let labels = suspected.item.labels();
    let repository = labels.iter().find(|label| matches!(label, Label::Repository(_)));
    repository.or(labels.first()).map_or_else(|| suspected.asked.clone(), Label::to_string)
}

#[cfg(test)]
mod tests {
    use ibi_protocol::Forms;

    use super::*;
    use crate::registry::Settings;

    #[test]
    fn an_alert_is_kept_in_the_registry() {
        let folder = tempfile::tempdir().unwrap();
        let service: Label = "J8LNKB5R7W/3FUQHC5".parse().unwrap();
        let settings = Settings { public_url: "http://urlib.net".to_owned(), service: service.clone() };
        let registry = Registry::create(folder.path(), &settings).unwrap();
        let claim = |seen| Claim { service: service.clone(), url: None, timestamp: None, seen };
        let item = Forms::new(["a.br/b/2009/02.16.17.46".parse().unwrap()]);
        for now in [7, 8] {
            let (item, asked) = (item.clone(), "a.br/b/2009/02.16.17.46".to_owned());
            Known::raise(&registry, &Suspected { item, asked, claims: vec![claim(now)] }, now);
        }
        let alerts = registry.alerts(false).unwrap();
        assert_eq!((alerts.len(), alerts[0].times, alerts[0].claims[0].seen), (1, 2, 8));
        assert_eq!(Known::archives(&registry).len(), 0);
    }

    #[test]
    fn an_item_has_one_name_whatever_is_known_of_it() {
        let suspected = |labels: &[&str]| Suspected {
            item: Forms::new(labels.iter().map(|label| label.parse().unwrap())),
            asked: "8JMKD3MGP8W/35MME4E+(pt)".to_owned(),
            claims: Vec::new(),
        };
        let (ibip, rep) = ("8JMKD3MGP8W/35MME4E", "a.br/b/2009/02.16.17.46");
        assert_eq!(name(&suspected(&[ibip, rep])), rep);
        assert_eq!(name(&suspected(&[rep])), rep);
        assert_eq!(name(&suspected(&[ibip])), ibip);
        assert_eq!(name(&suspected(&[])), "8JMKD3MGP8W/35MME4E+(pt)");
    }
}
