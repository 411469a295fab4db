//! Errors of the registry.

use ibi_http::pooled_client::ServerAddressError;

/// Why the registry could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolverRegistryError {
    /// The storage failed.
    #[error(transparent)]
    Store(#[from] ibi_store::registry::RegistryStorageError),
    /// An entry that this program did not write.
    #[error("the registry is damaged: the Archive {id} has {what}")]
    Damaged {
        /// Its number.
        id: u64,
        /// The reason.
        what: &'static str,
    },
    /// The location index failed.
    #[error(transparent)]
    Index(#[from] ibi_store::StorageError),
    /// No HTTP client could be made.
    #[error("{0}")]
    Client(String),
    /// Another server uses it.
    #[error("a server has the resolver in {} online already: stop it first", .data.display())]
    Served {
        /// The data folder.
        data: std::path::PathBuf,
    },
    /// No such Archive.
    #[error("{service} is not registered here: `ibi resolver register` registers an Archive")]
    Unknown {
        /// The label.
        service: String,
    },
    /// Not a valid label.
    #[error("not a valid IBI")]
    Label,
    /// A URL that cannot be the base of persistent URLs.
    #[error(
        "`{given}` cannot be the public URL: write http:// or https:// and a host, as in http://urlib.net"
    )]
    PublicUrl {
        /// The given text.
        given: String,
    },
    /// Not a valid address.
    #[error("not a valid address: {0}")]
    Address(#[from] ServerAddressError),
    /// Not a valid host.
    #[error("`{given}` is not a valid host: write it like archive.example.org, without http:// or path")]
    Host {
        /// The given text.
        given: String,
    },
    /// Too many hosts.
    #[error("an Archive has at most {most} further hosts")]
    ManyHosts {
        /// The limit.
        most: usize,
    },
    /// A text that cannot be imported.
    #[error(transparent)]
    Import(#[from] RegistryImportError),
    /// The program is shutting down.
    #[error("stopped")]
    Stopped,
    /// A key could not be generated or hashed.
    #[error("no key could be made: {0}")]
    Key(String),
}

impl ResolverRegistryError {
    /// Whether this is a refusal rather than a failure: a registry exists where none may be, is
    /// missing where one must be, or was written by a newer program.
    pub fn is_refusal(&self) -> bool {
        use ibi_store::registry::RegistryStorageError as Store;
        matches!(
            self,
            Self::Served { .. }
                | Self::Store(Store::Exists { .. } | Store::Missing { .. } | Store::Newer { .. })
        )
    }
}

/// Why a text was not imported. Nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {rule}. Nothing was imported")]
pub struct RegistryImportError {
    /// The line, from 1.
    pub line: usize,
    /// The violated rule.
    pub rule: String,
}
