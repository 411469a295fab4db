//! What can be wrong with the registry.

use ibi_http::asking::AddressError;

/// Why the registry could not be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The file.
    #[error(transparent)]
    Store(#[from] ibi_store::registry::RegistryError),
    /// Something in it that this program did not write.
    #[error("the registry is damaged: the Archive {id} has {what}")]
    Damaged {
        /// Its number.
        id: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Another server works with it.
    #[error("a server has the resolver in {} on line already: stop it first", .data.display())]
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
    /// A text that is no label.
    #[error("that is no IBI")]
    Label,
    /// A URL that cannot be the base of persistent URLs.
    #[error(
        "`{given}` cannot be the public URL: write http:// or https:// and a host, as in http://urlib.net"
    )]
    PublicUrl {
        /// What was given.
        given: String,
    },
    /// An address that is none.
    #[error("that is no address: {0}")]
    Address(#[from] AddressError),
    /// A host that is none.
    #[error("`{given}` is no host: write it as in archive.example.org, without http:// and path")]
    Host {
        /// What was given.
        given: String,
    },
    /// Too many hosts.
    #[error("an Archive has at most {most} further hosts")]
    ManyHosts {
        /// The bound.
        most: usize,
    },
    /// A text that cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The program is being ended.
    #[error("stopped")]
    Stopped,
    /// No key could be made or hashed.
    #[error("no key could be made: {0}")]
    Key(String),
}

impl RegistryError {
    /// Whether nothing failed: there is a registry where none may be, none where one must be, or one of a newer program.
    pub fn is_refusal(&self) -> bool {
        use ibi_store::registry::RegistryError as Store;
        matches!(
            self,
            Self::Served { .. }
                | Self::Store(Store::Exists { .. } | Store::Missing { .. } | Store::Newer { .. })
        )
    }
}

/// Why a text was not imported: nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {rule}. Nothing was imported")]
pub struct ImportError {
    /// The line, from 1 on.
    pub line: usize,
    /// The rule that it breaks.
    pub rule: String,
}
