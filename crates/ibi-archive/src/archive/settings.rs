//! What an Archive is: the file `archive` in the data folder. The labels of its service are fixed
//! when it is started; how it names itself and its software to resolvers can be changed.

use std::path::Path;

use ibi_id::Label;
use ibi_store::KeepError;
use ibi_store::records::Role;
use ibi_store::settings;

use crate::ArchiveError;
use crate::archive::{Archive, Holdings};
use crate::item::Labels;

/// What an Archive is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The labels of the Archive service, itself an item that is not transferable.
    pub service: Labels,
    /// The labels of its metadata.
    pub service_metadata: Labels,
    /// The label that it is registered with, if that is not the first of its own: another form of
    /// it, or an alias (clause 3.2).
    pub registered_label: Option<String>,
    /// The label of the software that it runs (`ibi.platformsoftware`, clause 3.4), if that has
    /// one.
    pub platform_software: Option<String>,
}

/// What is to be set anew; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// The label to be registered with.
    pub registered_label: Option<String>,
    /// The label of the platform software; empty: it has none.
    pub platform_software: Option<String>,
}

impl Settings {
    /// Those of a data folder; nothing if it holds no Archive.
    pub fn read(data: &Path) -> Result<Option<Self>, ArchiveError> {
        let Some(lines) = settings::read(data)? else { return Ok(None) };
        let value =
            |name: &str| lines.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let labels = |what: &str| Labels {
            rep: value(&format!("{what}-rep")),
            ibip: value(&format!("{what}-ibip")),
            legacy: value(&format!("{what}-legacy")),
        };
        Ok(Some(Self {
            service: labels("service"),
            service_metadata: labels("service-metadata"),
            registered_label: value("registered-label"),
            platform_software: value("platform-software"),
        }))
    }

    pub(super) fn write(&self, data: &Path) -> Result<(), KeepError> {
        let mut lines = Vec::new();
        for (what, labels) in [("service", &self.service), ("service-metadata", &self.service_metadata)] {
            for (form, label) in [("rep", &labels.rep), ("ibip", &labels.ibip), ("legacy", &labels.legacy)] {
                lines.extend(label.as_ref().map(|label| (format!("{what}-{form}"), label.clone())));
            }
        }
        let others =
            [("registered-label", &self.registered_label), ("platform-software", &self.platform_software)];
        let others = others.into_iter().filter_map(|(name, label)| Some((name.to_owned(), label.clone()?)));
        lines.extend(others);
        settings::write(data, &lines)
    }

    /// The label that resolvers are told: the one that the Archive is registered with.
    pub fn announced(&self) -> &str {
        self.registered_label.as_deref().unwrap_or_else(|| self.service.primary())
    }

    /// The labels of the service as resolvers are told them: the one that it is registered with is
    /// among them.
    pub(crate) fn told_service(&self) -> Labels {
        let mut labels = self.service.clone();
        if let Some(registered) = &self.registered_label
            && let Ok(label) = Label::parse(registered)
        {
            *labels.of(label.form()) = Some(registered.clone());
        }
        labels
    }

    /// Whether a label is one that the Archive is known by to resolvers and other Archives.
    pub(crate) fn are_of(&self, label: &str) -> bool {
        self.service.have(label) || self.told_service().have(label)
    }
}

impl Holdings {
    /// Whether a label leads to the Archive service: any label of that item does, aliases too
    /// (clause 2).
    pub fn is_service(&self, label: &str) -> bool {
        if self.settings.are_of(label) {
            return true;
        }
        let path = || Some(self.find(self.settings.service.primary()).ok()?.0.path);
        self.find(label).is_ok_and(|(found, role)| role == Role::Alias && Some(found.path) == path())
    }
}

impl Archive {
    /// Changes how the Archive names itself and its software.
    pub fn change_settings(&mut self, change: SettingsChange) -> Result<&Settings, ArchiveError> {
        let mut settings = self.holdings.settings.clone();
        if let Some(label) = change.registered_label {
            if !self.holdings.is_service(&label) {
                let what = format!(
                    "{} is no label of the Archive service: `ibi archive update {} --alias` gives it one more",
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
        settings.write(&self.holdings.data)?;
        self.holdings.settings = settings;
        Ok(&self.holdings.settings)
    }
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
        let settings = Settings::read(data.path()).unwrap().unwrap();
        assert_eq!(settings.announced(), "8JMKD3MGP8W/34PGRBS");
        let software = settings.platform_software.as_deref();
        assert_eq!(software, Some("dpi.inpe.br/banon/1998/08.02.08.56"));
        settings.write(data.path()).unwrap();
        assert_eq!(std::fs::read_to_string(data.path().join("archive")).unwrap(), frozen);
    }

    /// Clauses 3.2 and 3.4: what resolvers are told has the label that they know.
    #[test]
    fn a_registered_alias_is_among_the_labels_that_are_told() {
        let label = |text: &str| Some(text.to_owned());
        let service = Labels { rep: label("a.br/b/2001/01.01.00.00"), ..Labels::default() };
        let mut settings = Settings { service, ..Settings::default() };
        assert_eq!(
            (settings.announced(), settings.told_service()),
            ("a.br/b/2001/01.01.00.00", settings.service.clone())
        );
        for (registered, form) in [("8JMKD3MGP8W/34PGRBS", "ibip"), ("c.br/d/1999/01.01.00.00", "rep")] {
            settings.registered_label = label(registered);
            let told = settings.told_service();
            let found = if form == "ibip" { &told.ibip } else { &told.rep };
            assert_eq!(found.as_deref(), Some(registered));
            assert!(settings.are_of(registered) && settings.are_of("a.br/b@80/2001/01.01.00.00"));
        }
        assert!(!settings.are_of("e.br/f/2001/01.01.00.00"));
    }
}
