//! Who claims the Original of an item, as far as a resolver finds out (clause 2.1: no copy without
//! an original).

use serde::Deserialize;

use super::peer::{Peer, PeerError};
use super::resolver::not_a_resolver;
use crate::archive::Settings;

/// What a resolver says of the Original of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginalClaim {
    /// All Archives answered, and none claims it.
    Nobody,
    /// This Archive does.
    Here,
    /// Others do: the labels of their services.
    Elsewhere(Vec<String>),
    /// It was removed, and nobody claims it.
    Removed,
    /// Some did not answer: the labels of their services.
    Unsure(Vec<String>),
}

/// Of a resolver's answer, what is needed (`docs/formats/resolution-json.md`).
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
    /// Asks a resolver. `own` is what this Archive is known by: it need not be on line to be asked
    /// for itself.
    pub async fn ask(resolver: &Peer, own: &Settings, label: &str) -> Result<Self, PeerError> {
        let resolved: ResolvedOriginal =
            resolver.resolve_original(label, false).await.map_err(not_a_resolver)?;
        let strange = resolver.url().to_owned();
        Self::of(resolved.outcome, own).ok_or_else(|| PeerError::NotAResolver {
            url: strange,
            what: "its answer means nothing here".to_owned(),
        })
    }

    fn of(outcome: OriginalOutcome, own: &Settings) -> Option<Self> {
        let others = |archives: Vec<String>| -> Vec<String> {
            archives.into_iter().filter(|archive| !own.are_of(archive)).collect()
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
    use crate::item::Labels;

    #[test]
    fn clause_2_1_a_resolvers_answer_says_who_claims_the_original() {
        let label = |text: &str| Some(text.to_owned());
        let service = Labels { rep: label("a.br/own/1999/01.01.00.00"), ..Labels::default() };
        let registered_label = label("8JMKD3MGP8W/34PGRBS");
        let own = Settings { service, registered_label, ..Settings::default() };
        let of = |text: &str| OriginalClaim::of(serde_json::from_str(text).unwrap(), &own);
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
