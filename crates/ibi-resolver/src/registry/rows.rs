//! Archives and settings as they are kept.

use std::sync::Arc;

use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_store::registry::{ArchiveRow, SettingsRow};

use super::{Entry, RegistryError, Times};
use crate::archive::{Archive, ArchivePlatform, Standing};

impl Standing {
    const ALL: [Self; 5] = [Self::New, Self::Unconfirmed, Self::OnLine, Self::OffLine, Self::Retired];

    /// The word for it, in files and for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Standing::New => "new",
            Standing::Unconfirmed => "unconfirmed",
            Standing::OnLine => "online",
            Standing::OffLine => "offline",
            Standing::Retired => "retired",
        }
    }

    /// Reads such a word.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.as_str() == word)
    }
}

/// What the operator says when a resolver is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The base of its persistent URLs, without a slash at its end.
    pub public_url: String,
    /// The label of its own service.
    pub service: Label,
}

impl Settings {
    pub(super) fn to_row(&self) -> Result<SettingsRow, RegistryError> {
        let public_url = self.public_url.trim_end_matches('/').to_owned();
        let host = public_url.strip_prefix("http://").or(public_url.strip_prefix("https://"));
        let is_plain =
            |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '@' | '\\' | '"' | '<' | '>');
        if host.is_none_or(|host| host.is_empty() || host.starts_with('/'))
            || !public_url.chars().all(is_plain)
        {
            return Err(RegistryError::PublicUrl { given: ibi_protocol::shown::shown(&self.public_url) });
        }
        Ok(SettingsRow { public_url, service: self.service.spelling().to_owned() })
    }

    pub(super) fn of_row(row: SettingsRow) -> Result<Self, RegistryError> {
        let service = row.service.parse().map_err(|_| RegistryError::Label)?;
        Ok(Self { public_url: row.public_url, service })
    }
}

/// An Archive that was never here.
pub(super) fn new(service: &Label, now: i64) -> ArchiveRow {
    ArchiveRow {
        id: 0,
        canonical: service.to_string(),
        service: service.spelling().to_owned(),
        key_hash: String::new(),
        address: None,
        hosts: Vec::new(),
        standing: Standing::New.as_str().to_owned(),
        registered: now,
        changed: now,
        email: None,
        turn: 0,
        asked: None,
        confirmed: None,
        ip: None,
        protocol: None,
        platform: None,
    }
}

pub(super) fn archive(row: &ArchiveRow) -> Result<Archive, RegistryError> {
    let damaged = |what| RegistryError::Damaged { id: row.id, what };
    Ok(Archive {
        id: ArchiveId(row.id),
        service: row.service.parse().map_err(|_| damaged("a service that is no IBI"))?,
        address: row.address.clone(),
        hosts: row.hosts.clone(),
        standing: Standing::read(&row.standing).ok_or_else(|| damaged("a standing that is none"))?,
        registered: row.registered,
        changed: row.changed,
        email: row.email.clone(),
        platform: ArchivePlatform {
            ip: row.ip.clone(),
            protocol: row.protocol.clone(),
            version: row.platform.clone(),
        },
    })
}

pub(super) fn entry(row: ArchiveRow) -> Result<Entry, RegistryError> {
    Ok(Entry {
        archive: Arc::new(archive(&row)?),
        key_hash: row.key_hash.into(),
        turn: row.turn,
        times: Times { asked: row.asked, confirmed: row.confirmed },
    })
}
