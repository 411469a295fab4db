//! The claims to an item's Original, as a resolver finds them (clause 2.1: no copy without an
//! original).

use serde::Deserialize;

use super::peer::{PeerArchive, PeerError};
use super::resolver::not_a_resolver;
use crate::archive::ArchiveSettings;

/// A resolver's answer about the Original of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginalClaim {
    /// All Archives answered, and none claims it.
    Nobody,
    /// This Archive claims it.
    Here,
    /// Others claim it: their service labels.
    Elsewhere(Vec<String>),
    /// Removed, and nobody claims it.
    Removed,
    /// Some did not answer: their service labels.
    Unsure(Vec<String>),
}

/// A resolver's response, reduced to the fields needed here (`docs/formats/resolution-json.md`).
#[derive(Deserialize)]
struct ResolvedOriginal {
    outcome: OriginalOutcome,
}

#[derive(Deserialize)]
struct OriginalOutcome {
    status: u16,
    #[serde(default)]
    archive: Option<String>,
    #[serde(default)]
    claims: Vec<String>,
    #[serde(default)]
    silent: Vec<String>,
}

impl OriginalClaim {
    /// Asks a resolver. `own` identifies this Archive, which need not be online.
    pub async fn ask(resolver: &PeerArchive, own: &ArchiveSettings, label: &str) -> Result<Self, PeerError> {
        let resolved: ResolvedOriginal =
            resolver.resolve_original(label, false).await.map_err(not_a_resolver)?;
        let strange = resolver.url().to_owned();
        Self::from_outcome(resolved.outcome, own).ok_or_else(|| PeerError::NotAResolver {
            url: strange,
            what: "its answer means nothing here".to_owned(),
        })
    }

    fn from_outcome(outcome: OriginalOutcome, own: &ArchiveSettings) -> Option<Self> {
        let others = |archives: Vec<String>| -> Vec<String> {
            archives.into_iter().filter(|archive| !own.is_service_label(archive)).collect()
        };
        Some(match outcome.status {
            302 => match others(vec![outcome.archive?]) {
                none if none.is_empty() => Self::Here,
                others => Self::Elsewhere(others),
            },
            404 => Self::Nobody,
            409 => Self::Elsewhere(others(outcome.claims)),
            410 => Self::Removed,
            503 => match others(outcome.silent) {
                none if none.is_empty() => Self::Nobody,
                silent => Self::Unsure(silent),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::ItemLabels;

    #[test]
    fn clause_2_1_a_resolvers_answer_says_who_claims_the_original() {
        let label = |text: &str| Some(text.to_owned());
        let service = ItemLabels { rep: label("a.br/own/1999/01.01.00.00"), ..ItemLabels::default() };
        let registered_label = label("8JMKD3MGP8W/34PGRBS");
        let own = ArchiveSettings { service, registered_label, ..ArchiveSettings::default() };
        let of = |text: &str| OriginalClaim::from_outcome(serde_json::from_str(text).unwrap(), &own);
        let other = || vec!["b.br/x/1999/01.01.00.00".to_owned()];
        assert_eq!(of(r#"{"status":404}"#), Some(OriginalClaim::Nobody));
        assert_eq!(
            of(r#"{"status":302,"archive":"a.br/own@80/1999/01.01.00.00"}"#),
            Some(OriginalClaim::Here)
        );
        assert_eq!(of(r#"{"status":302,"archive":"8jmkd3mgp8w/34pgrbs"}"#), Some(OriginalClaim::Here));
        assert_eq!(
            of(r#"{"status":302,"archive":"b.br/x/1999/01.01.00.00"}"#),
            Some(OriginalClaim::Elsewhere(other()))
        );
        assert_eq!(
            of(r#"{"status":409,"claims":["a.br/own/1999/01.01.00.00","b.br/x/1999/01.01.00.00"]}"#),
            Some(OriginalClaim::Elsewhere(other()))
        );
        assert_eq!(of(r#"{"status":410}"#), Some(OriginalClaim::Removed));
        assert_eq!(
            of(r#"{"status":503,"silent":["a.br/own/1999/01.01.00.00"]}"#),
            Some(OriginalClaim::Nobody)
        );
        assert_eq!(
            of(r#"{"status":503,"silent":["b.br/x/1999/01.01.00.00"]}"#),
            Some(OriginalClaim::Unsure(other()))
        );
        assert_eq!(of(r#"{"status":302}"#), None);
        assert_eq!(of(r#"{"status":508}"#), None);
    }
}
