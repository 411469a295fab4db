//! An Archive in the registry.

use ibi_http::pooled_client::HttpScheme;
use ibi_id::Label;
use ibi_protocol::WireProtocol;
use ibi_protocol::analysis::ArchiveId;

/// A registered Archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredArchive {
    /// Its number in this registry; never reused.
    pub id: ArchiveId,
    /// The label of its service, which identifies it.
    pub service: Label,
    /// Its address when it last came online: a host, with `:` and a port if needed.
    pub address: Option<String>,
    /// Additional hosts of its URLs, set by the operator.
    pub hosts: Vec<String>,
    /// Whether requests are sent to it.
    pub standing: RegistrationStatus,
    /// When it was registered, in seconds since the Unix epoch.
    pub registered: i64,
    /// When its status or address last changed.
    pub changed: i64,
    /// The contact address that it supplied.
    pub email: Option<String>,
    /// What else it reported when it came online (3.3).
    pub platform: ArchivePlatform,
}

/// The machine and software that an Archive reports when it comes online (3.3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchivePlatform {
    /// `archiveip`.
    pub ip: Option<String>,
    /// `archiveprotocol`.
    pub protocol: Option<String>,
    /// `archiveplatformversion`.
    pub version: Option<String>,
}

/// The status of an Archive in the registry (3.3, D21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegistrationStatus {
    /// Registered, but never online yet.
    New,
    /// Announced as online but not confirmed: receives no requests.
    Unconfirmed,
    /// Online and confirmed: receives requests.
    OnLine,
    /// It has gone offline.
    OffLine,
    /// Permanently gone, as declared by the operator: no longer counts (4.3).
    Retired,
}

impl RegisteredArchive {
    /// How it is asked: as it said with its key when it came online (3.3).
    pub fn scheme(&self) -> HttpScheme {
        match self.platform.protocol.as_deref() {
            Some(word) if word.eq_ignore_ascii_case(WireProtocol::Https.as_str()) => HttpScheme::Https,
            _ => HttpScheme::Http,
        }
    }

    /// The URL of a path, from its `/`, at its address; `None` before it first came online.
    pub fn url(&self, path: &str) -> Option<String> {
        let scheme = match self.scheme() {
            HttpScheme::Http => "http://",
            HttpScheme::Https => "https://",
        };
        Some([scheme, self.address.as_deref()?, path].concat())
    }

    /// The hosts on which its URLs may be (4.2 step 2).
    pub fn url_hosts(&self) -> Vec<String> {
        self.address.iter().chain(&self.hosts).cloned().collect()
    }
}
