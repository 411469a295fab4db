//! The settings of an Archive: the file `archive` in the data folder. The labels of its service are
//! fixed when it is created; the label for resolvers and that of its software can be changed.

use std::path::Path;

use ibi_id::Label;
use ibi_store::StorageError;
use ibi_store::index::LabelRole;
use ibi_store::settings;

use crate::ArchiveError;
use crate::archive::{Archive, Holdings};
use crate::item::ItemLabels;

/// The settings of an Archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveSettings {
    /// The labels of the Archive service, itself an item that is not transferable.
    pub service: ItemLabels,
    /// The labels of its metadata.
    pub service_metadata: ItemLabels,
    /// The label that it is registered with, if that is not the first of its own: another form of
    /// it, or an alias (clause 3.2).
    pub registered_label: Option<String>,
    /// The label of the software that it runs (`ibi.platformsoftware`, clause 3.4), if that has
    /// one.
    pub platform_software: Option<String>,
    /// The operator's name in histories and tombstones; default `operator`.
    pub operator_name: Option<String>,
}

/// A change of settings; omitted fields stay unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveSettingsChange {
    /// The label to be registered with.
    pub registered_label: Option<String>,
    /// The label of the platform software; empty: it has none.
    pub platform_software: Option<String>,
    /// The name of the operator; empty: it has none.
    pub operator_name: Option<String>,
}

impl ArchiveSettings {
    /// Those of a data folder; nothing if it holds no Archive.
    pub fn read(data: &Path) -> Result<Option<Self>, ArchiveError> {
        let Some(lines) = settings::read(data)? else { return Ok(None) };
        let value =
            |name: &str| lines.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let labels = |what: &str| ItemLabels {
            rep: value(&format!("{what}-rep")),
            ibip: value(&format!("{what}-ibip")),
            legacy: value(&format!("{what}-legacy")),
        };
        Ok(Some(Self {
            service: labels("service"),
            service_metadata: labels("service-metadata"),
            registered_label: value("registered-label"),
            platform_software: value("platform-software"),
            operator_name: value("operator-name"),
        }))
    }

    pub(crate) fn write(&self, data: &Path) -> Result<(), StorageError> {
        let mut lines = Vec::new();
        for (what, labels) in [("service", &self.service), ("service-metadata", &self.service_metadata)] {
            for (form, label) in [("rep", &labels.rep), ("ibip", &labels.ibip), ("legacy", &labels.legacy)] {
                lines.extend(label.as_ref().map(|label| (format!("{what}-{form}"), label.clone())));
            }
        }
        let others = [
            ("registered-label", &self.registered_label),
            ("platform-software", &self.platform_software),
            ("operator-name", &self.operator_name),
        ];
        let others = others.into_iter().filter_map(|(name, label)| Some((name.to_owned(), label.clone()?)));
        lines.extend(others);
        settings::write(data, &lines)
    }

    /// The label for resolvers: the one that the Archive is registered with.
    pub fn announced_label(&self) -> &str {
        self.registered_label.as_deref().unwrap_or_else(|| self.service.primary())
    }

    /// The labels of the service for resolvers, including the one that it is registered with.
    pub(crate) fn announced_labels(&self) -> ItemLabels {
        let mut labels = self.service.clone();
        if let Some(registered) = &self.registered_label
            && let Ok(label) = Label::parse(registered)
        {
            *labels.slot_mut(label.form()) = Some(registered.clone());
        }
        labels
    }

    /// Whether a label is one that the Archive is known by to resolvers and other Archives.
    pub(crate) fn is_service_label(&self, label: &str) -> bool {
        self.service.has_label(label) || self.announced_labels().has_label(label)
    }
}

impl Holdings {
    /// Whether a label leads to the Archive service: any label of that item does, aliases too
    /// (clause 2).
    pub fn is_service(&self, label: &str) -> bool {
        if self.settings.is_service_label(label) {
            return true;
        }
        let path = || Some(self.find(self.settings.service.primary()).ok()?.0.path);
        self.find(label).is_ok_and(|(found, role)| role == LabelRole::Alias && Some(found.path) == path())
    }
}

impl Archive {
    /// Changes the settings.
    pub fn change_settings(
        &mut self,
        change: ArchiveSettingsChange,
    ) -> Result<&ArchiveSettings, ArchiveError> {
        let mut settings = self.holdings.settings.clone();
        if let Some(label) = change.registered_label {
            if !self.holdings.is_service(&label) {
                let what = format!(
                    "{} is not a label of the Archive service: `ibi archive update {} --alias` adds one",
                    label.escape_debug(),
                    settings.service.primary()
                );
                return Err(ArchiveError::Value(what));
            }
            settings.registered_label = Some(label);
        }
        if let Some(label) = change.platform_software {
            if !label.is_empty() {
                Label::parse(&label).map_err(|error| ArchiveError::Label {
                    label: label.escape_debug().to_string(),
                    error,
                })?;
            }
            settings.platform_software = Some(label).filter(|label| !label.is_empty());
        }
        if let Some(name) = change.operator_name {
            check_operator_name(&name)?;
            settings.operator_name = Some(name).filter(|name| !name.is_empty());
        }
        settings.write(&self.holdings.data)?;
        self.holdings.settings = settings;
        Ok(&self.holdings.settings)
    }
}

/// Limit on the bytes of the operator's name.
const MAX_OPERATOR_NAME_BYTES: usize = 200;

/// Whether an operator's name is valid; empty for none.
pub fn check_operator_name(name: &str) -> Result<(), ArchiveError> {
    if name.len() > MAX_OPERATOR_NAME_BYTES || name.chars().any(char::is_control) || name.trim() != name {
        return Err(ArchiveError::Value(format!(
            "the operator's name has at most {MAX_OPERATOR_NAME_BYTES} bytes, on one line, without blanks around it"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `docs/formats/data-folder.md` describes it.
    #[test]
    fn a_frozen_file_is_read_and_written_as_it_was() {
        let frozen = include_str!("../../tests/samples/archive-settings-1");
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(data.path().join("staging")).unwrap();
        std::fs::write(data.path().join("archive"), frozen).unwrap();
        let settings = ArchiveSettings::read(data.path()).unwrap().unwrap();
        assert_eq!(settings.announced_label(), "8JMKD3MGP8W/34PGRBS");
        let software = settings.platform_software.as_deref();
        assert_eq!(software, Some("dpi.inpe.br/banon/1998/08.02.08.56"));
        settings.write(data.path()).unwrap();
        assert_eq!(std::fs::read_to_string(data.path().join("archive")).unwrap(), frozen);
    }

    /// Older programs read it too, and lose the name when they write it.
    #[test]
    fn a_frozen_file_with_the_name_of_an_operator_is_read_and_written_as_it_was() {
        let frozen = include_str!("../../tests/samples/archive-settings-2");
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir(data.path().join("staging")).unwrap();
        std::fs::write(data.path().join("archive"), frozen).unwrap();
        let settings = ArchiveSettings::read(data.path()).unwrap().unwrap();
        assert_eq!(settings.operator(), "Biblioteca do INPE");
        settings.write(data.path()).unwrap();
        assert_eq!(std::fs::read_to_string(data.path().join("archive")).unwrap(), frozen);
    }

    /// Clauses 3.2 and 3.4: what resolvers are told has the label that they know.
    #[test]
    fn a_registered_alias_is_among_the_labels_that_are_told() {
        let label = |text: &str| Some(text.to_owned());
        let service = ItemLabels { rep: label("a.br/b/2001/01.01.00.00"), ..ItemLabels::default() };
        let mut settings = ArchiveSettings { service, ..ArchiveSettings::default() };
        assert_eq!(
            (settings.announced_label(), settings.announced_labels()),
            ("a.br/b/2001/01.01.00.00", settings.service.clone())
        );
        for (registered, form) in [("8JMKD3MGP8W/34PGRBS", "ibip"), ("c.br/d/1999/01.01.00.00", "rep")] {
            settings.registered_label = label(registered);
            let told = settings.announced_labels();
            let found = if form == "ibip" { &told.ibip } else { &told.rep };
            assert_eq!(found.as_deref(), Some(registered));
            assert!(
                settings.is_service_label(registered)
                    && settings.is_service_label("a.br/b@80/2001/01.01.00.00")
            );
        }
        assert!(!settings.is_service_label("e.br/f/2001/01.01.00.00"));
    }

    #[test]
    fn the_name_of_an_operator_is_one_line() {
        for name in ["", "operator", "Biblioteca Central"] {
            assert!(check_operator_name(name).is_ok());
        }
        for name in ["two\nlines", " blank", &"x".repeat(201)] {
            assert!(check_operator_name(name).is_err());
        }
    }
}
