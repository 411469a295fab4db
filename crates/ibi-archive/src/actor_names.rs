//! Public names of actors: the names of tokens, and one name for the operator. Names of
//! operating-system users are private, but older lines contain them.

use std::collections::HashSet;

use ibi_store::journal::{JournalEntry, Verb};

use crate::ArchiveError;
use crate::archive::{ArchiveSettings, HeldItem, Holdings};
use crate::item::ItemRemoval;
use crate::ownership::{LOCAL_OPERATOR, is_by_command};

impl ArchiveSettings {
    /// The public name of the operator.
    pub fn operator(&self) -> &str {
        self.operator_name.as_deref().unwrap_or(LOCAL_OPERATOR)
    }
}

/// The public names in the history of one item.
pub(crate) struct ActorNames<'a> {
    operator: &'a str,
    /// Names of operating-system users in it.
    users: HashSet<&'a str>,
}

impl<'a> ActorNames<'a> {
    pub(crate) fn of(settings: &'a ArchiveSettings, entries: &'a [JournalEntry]) -> Self {
        let users = entries.iter().filter(|entry| is_by_command(entry)).map(|entry| entry.by.as_str());
        Self { operator: settings.operator(), users: users.collect() }
    }

    /// The public name of the actor of a line.
    pub(crate) fn actor_of(&self, entry: &'a JournalEntry) -> &'a str {
        let is_user = entry.owner.is_none() && self.users.contains(entry.by.as_str());
        if is_user || is_by_command(entry) { self.operator } else { &entry.by }
    }

    fn with_actor_name(&self, removed: &ItemRemoval, entries: &'a [JournalEntry]) -> ItemRemoval {
        let line = entries
            .iter()
            .find(|entry| matches!(entry.verb, Verb::Remove | Verb::Purge) && entry.by == removed.by);
        let by = line.map_or(removed.by.as_str(), |line| self.actor_of(line));
        ItemRemoval { by: by.to_owned(), ..removed.clone() }
    }
}

impl Holdings {
    /// The removal of an item, with the public name of the actor.
    pub fn public_removal(&self, holding: &HeldItem) -> Result<Option<ItemRemoval>, ArchiveError> {
        let Some(removed) = &holding.item.removed else { return Ok(None) };
        let entries = self.history(&holding.path)?;
        Ok(Some(ActorNames::of(self.settings(), &entries).with_actor_name(removed, &entries)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::tests::deposit;

    #[test]
    fn users_of_the_machine_are_not_told_and_tokens_are() {
        let settings =
            ArchiveSettings { operator_name: Some("The library".to_owned()), ..ArchiveSettings::default() };
        let line = |verb, owner: Option<&str>, by: &str, key: Option<&str>| JournalEntry {
            verb,
            ..deposit(owner, by, key)
        };
        let entries = [
            line(Verb::Deposit, None, "root", None),
            line(Verb::Update, None, "root", None),
            line(Verb::Update, None, "Ana", None),
            line(Verb::Update, Some("00aa"), "root", Some("draft:1")),
            line(Verb::Remove, Some(LOCAL_OPERATOR), "maria", None),
        ];
        let names = ActorNames::of(&settings, &entries);
        let told: Vec<&str> = entries.iter().map(|entry| names.actor_of(entry)).collect();
        assert_eq!(told, ["The library", "The library", "Ana", "root", "The library"]);
        let removed = ItemRemoval {
            at: "2026-06-01T00:00:00Z".to_owned(),
            by: "maria".to_owned(),
            reason: "a mistake".to_owned(),
            purged: false,
        };
        assert_eq!(names.with_actor_name(&removed, &entries).by, "The library");
        assert_eq!(
            ActorNames::of(&ArchiveSettings::default(), &entries).actor_of(&entries[0]),
            LOCAL_OPERATOR
        );
        // A token that deposits over the API, before ids were recorded.
        let entries = [line(Verb::Deposit, None, "Ana", Some("draft:1"))];
        assert_eq!(ActorNames::of(&settings, &entries).actor_of(&entries[0]), "Ana");
    }
}
