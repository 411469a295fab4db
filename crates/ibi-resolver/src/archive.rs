//! An Archive as the registry knows it.

use ibi_id::Label;
use ibi_protocol::analysis::ArchiveId;

/// A registered Archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Its number in this registry: never given to another.
    pub id: ArchiveId,
    /// The label of its service, by which it is known.
    pub service: Label,
    /// Where it was when it came on line the last time: a host, and a port after `:` if needed.
    pub address: Option<String>,
    /// Further hosts on which its URLs may be, said by the operator.
    pub hosts: Vec<String>,
    /// Whether it is asked.
    pub standing: Standing,
    /// When it was registered, in seconds since the Unix epoch.
    pub registered: i64,
    /// When its standing or address changed the last time.
    pub changed: i64,
    /// Whom to write to, as it said itself.
    pub email: Option<String>,
    /// What else it said of itself when it came on line (3.3).
    pub platform: ArchivePlatform,
}

/// What an Archive says of its machine and software when it comes on line (3.3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivePlatform {
    /// `archiveip`.
    pub ip: Option<String>,
    /// `archiveprotocol`.
    pub protocol: Option<String>,
    /// `archiveplatformversion`.
    pub version: Option<String>,
}

/// How an Archive stands with the resolver (3.3, D21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Registered; it has not come on line yet.
    New,
    /// It says that it is on line, but it has not confirmed it: not asked.
    Unconfirmed,
    /// On line and confirmed: asked.
    OnLine,
    /// It has gone off line.
    OffLine,
    /// Gone for good, says the operator: it no longer counts (4.3).
    Retired,
}

impl Archive {
    /// The hosts on which its URLs may be (4.2 step 2).
    pub fn url_hosts(&self) -> Vec<String> {
        self.address.iter().chain(&self.hosts).cloned().collect()
    }
}
