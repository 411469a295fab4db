//! TLS by certificate files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate with its key, ready to serve.
#[derive(Clone)]
pub struct Tls(pub(crate) TlsAcceptor);

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that is not PEM, or not there.
    #[error("cannot read {what} from {}: {error}", .path.display())]
    File {
        /// Certificate or key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: rustls::pki_types::pem::Error,
    },
    /// They do not go together.
    #[error("the certificate and the key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// Reads a chain of certificates and its key, both PEM.
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |error| TlsError::File { what, path, error }
        };
        let chain = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(failed("the certificate", certificates))?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(failed("the key", key))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(…)")
    }
}
