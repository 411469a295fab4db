//! What an Archive is, fixed when it is started: the file `archive` in the data folder.

use std::path::Path;

use ibi_store::KeepError;
use ibi_store::settings;

use crate::ArchiveError;
use crate::item::Labels;

/// What an Archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The labels of the Archive service, itself an item that is not transferable.
    pub service: Labels,
    /// The labels of its metadata.
    pub service_metadata: Labels,
}

impl Settings {
    pub(crate) fn read(data: &Path) -> Result<Option<Self>, ArchiveError> {
        let Some(lines) = settings::read(data)? else { return Ok(None) };
        let value =
            |name: &str| lines.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let labels = |what: &str| Labels {
            rep: value(&format!("{what}-rep")),
            ibip: value(&format!("{what}-ibip")),
            legacy: None,
        };
        Ok(Some(Self { service: labels("service"), service_metadata: labels("service-metadata") }))
    }

    pub(super) fn write(&self, data: &Path) -> Result<(), KeepError> {
        let mut lines = Vec::new();
        for (what, labels) in [("service", &self.service), ("service-metadata", &self.service_metadata)] {
            for (form, label) in [("rep", &labels.rep), ("ibip", &labels.ibip)] {
                lines.extend(label.as_ref().map(|label| (format!("{what}-{form}"), label.clone())));
            }
        }
        settings::write(data, &lines)
    }
}
