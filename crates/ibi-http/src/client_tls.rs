//! TLS to other servers: who is trusted, and how a failed handshake is reported.

mod problem;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::regular_file;
use crate::tls::{MAX_PEM_BYTES, TlsError};

pub use problem::CertificateProblem;

/// What this process trusts. Set by the operator before anything is asked (`--ca-file`).
static PROCESS_TLS: RwLock<Option<ClientTls>> = RwLock::new(None);

/// Whom to trust as a server, prepared once. Clones share it.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Trusts the root certificates of the system, and those in this PEM file.
    pub fn read(ca_file: Option<&Path>) -> Result<Self, TlsError> {
        let mut roots = system_roots();
        if let Some(path) = ca_file {
            for certificate in read_certificates(path)? {
                roots.add(certificate)?;
            }
        }
        Self::trusting(roots)
    }

    /// What this process trusts: the system's roots, unless [`trust_ca_file`] added others.
    pub fn of_process() -> Result<Self, TlsError> {
        if let Some(tls) = &*PROCESS_TLS.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(tls.clone());
        }
        let tls = Self::read(None)?;
        let mut shared = PROCESS_TLS.write().unwrap_or_else(PoisonError::into_inner);
        Ok(shared.get_or_insert(tls).clone())
    }

    fn trusting(roots: RootCertStore) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// The settings, for a client that makes its own connections.
    pub(crate) fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.0)
    }

    /// Makes a connection secret. The certificate has to be for this name.
    pub(crate) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        name: ServerName<'static>,
        stream: S,
    ) -> std::io::Result<TlsStream<S>> {
        TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await
    }
}

/// Lets all clients of this process also trust the issuers in this PEM file: `--ca-file`.
pub fn trust_ca_file(path: &Path) -> Result<(), TlsError> {
    let tls = ClientTls::read(Some(path))?;
    *PROCESS_TLS.write().unwrap_or_else(PoisonError::into_inner) = Some(tls);
    Ok(())
}

/// The roots of the system. None is no error: plain HTTP needs none, and HTTPS then fails with an
/// unknown issuer.
fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let errors: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        tracing::debug!(errors = errors.join("; "), "the system has no root certificates");
    }
    roots
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = regular_file::read(path, MAX_PEM_BYTES).map_err(pem::Error::Io);
    let certificates = read
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
        .and_then(|found| if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) });
    certificates.map_err(|error| TlsError::File {
        what: "certificates of issuers",
        path: path.to_owned(),
        error,
    })
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientTls(…)")
    }
}
