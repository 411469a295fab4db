//! Archives and settings as stored rows.

use std::sync::Arc;

use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;
use ibi_store::registry::{ArchiveRow, RegistrySettingsRow};

use super::{ProbeTimes, RegistryEntry, ResolverRegistryError};
use crate::archive::{ArchivePlatform, RegisteredArchive, RegistrationStatus};

impl RegistrationStatus {
    const ALL: [Self; 5] = [Self::New, Self::Unconfirmed, Self::OnLine, Self::OffLine, Self::Retired];

    /// Its name in files and for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            RegistrationStatus::New => "new",
            RegistrationStatus::Unconfirmed => "unconfirmed",
            RegistrationStatus::OnLine => "online",
            RegistrationStatus::OffLine => "offline",
            RegistrationStatus::Retired => "retired",
        }
    }

    /// Parses such a name.
    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.as_str() == word)
    }
}

/// The settings chosen when a resolver is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverSettings {
    /// The base of its persistent URLs, without a trailing slash.
    pub public_url: String,
    /// The label of its own service.
    pub service: Label,
}

impl ResolverSettings {
    pub(super) fn to_row(&self) -> Result<RegistrySettingsRow, ResolverRegistryError> {
        let public_url = self.public_url.trim_end_matches('/').to_owned();
        let host = public_url.strip_prefix("http://").or(public_url.strip_prefix("https://"));
        let is_plain =
            |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '@' | '\\' | '"' | '<' | '>');
        if host.is_none_or(|host| host.is_empty() || host.starts_with('/'))
            || !public_url.chars().all(is_plain)
        {
            return Err(ResolverRegistryError::PublicUrl {
                given: ibi_protocol::untrusted_text::quote_untrusted(&self.public_url),
            });
        }
        Ok(RegistrySettingsRow { public_url, service: self.service.spelling().to_owned() })
    }

    pub(super) fn of_row(row: RegistrySettingsRow) -> Result<Self, ResolverRegistryError> {
        let service = row.service.parse().map_err(|_| ResolverRegistryError::Label)?;
        Ok(Self { public_url: row.public_url, service })
    }
}

/// The row of a new Archive.
pub(super) fn new_row(service: &Label, now: i64) -> ArchiveRow {
    ArchiveRow {
        id: 0,
        canonical: service.to_string(),
        service: service.spelling().to_owned(),
        key_hash: String::new(),
        address: None,
        hosts: Vec::new(),
        standing: RegistrationStatus::New.as_str().to_owned(),
        registered: now,
        changed: now,
        email: None,
        turn: 0,
        asked: None,
        confirmed: None,
        ip: None,
        protocol: None,
        platform: None,
        problem: None,
    }
}

pub(super) fn archive_from_row(row: &ArchiveRow) -> Result<RegisteredArchive, ResolverRegistryError> {
    let damaged = |what| ResolverRegistryError::Damaged { id: row.id, what };
    Ok(RegisteredArchive {
        id: ArchiveId(row.id),
        service: row.service.parse().map_err(|_| damaged("a service that is no IBI"))?,
        address: row.address.clone(),
        hosts: row.hosts.clone(),
        standing: RegistrationStatus::read(&row.standing)
            .ok_or_else(|| damaged("a standing that is none"))?,
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

pub(super) fn entry_from_row(row: ArchiveRow) -> Result<RegistryEntry, ResolverRegistryError> {
    Ok(RegistryEntry {
        archive: Arc::new(archive_from_row(&row)?),
        key_hash: row.key_hash.into(),
        turn: row.turn,
        times: ProbeTimes { asked: row.asked, confirmed: row.confirmed },
        problem: row.problem.map(Into::into),
    })
}
