//! TLS from certificate files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::regular_file;

/// Maximum size of a certificate or key file.
pub(crate) const MAX_PEM_BYTES: u64 = 1 << 20;

/// A certificate with its key. Clones share the same state.
#[derive(Clone)]
pub struct ServerTls(Arc<TlsFiles>);

struct TlsFiles {
    certificates: PathBuf,
    key: PathBuf,
    acceptor: RwLock<TlsAcceptor>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that is missing or not PEM.
    #[error("cannot read {what} from {}: {error}", .path.display())]
    File {
        /// Certificate or key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        error: pem::Error,
    },
    /// Certificate and key do not match, or a certificate of an issuer is none.
    #[error("the certificate and the key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

impl ServerTls {
    /// Reads a certificate chain and its key, both PEM.
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let acceptor = RwLock::new(acceptor_of(certificates, key)?);
        Ok(Self(Arc::new(TlsFiles { certificates: certificates.to_owned(), key: key.to_owned(), acceptor })))
    }

    /// Reloads both files for new connections. If they are invalid, the old ones stay in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let acceptor = acceptor_of(&self.0.certificates, &self.0.key)?;
        *self.0.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.0.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn acceptor_of(certificates: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |error| TlsError::File { what, path, error }
    };
    let read = |path: &Path| regular_file::read(path, MAX_PEM_BYTES).map_err(pem::Error::Io);
    let chain = read(certificates)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
        .map_err(failed("the certificate", certificates))?;
    let key =
        read(key).and_then(|text| PrivateKeyDer::from_pem_slice(&text)).map_err(failed("the key", key))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(…)")
    }
}
