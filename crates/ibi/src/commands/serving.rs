//! What all servers of this program do alike.

use std::net::SocketAddr;
use std::path::PathBuf;

use ibi_archive::access::Range;
use ibi_http::Tls;
use ibi_http::client::Proxies;
use ibi_http::telemetry;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Answer, Failure};

/// Runs a server to its end, with a log.
pub(super) fn run(server: impl Future<Output = Result<Answer, Failure>>) -> Result<Answer, Failure> {
    telemetry::log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::Serve)?.block_on(server)
}

pub(super) fn tls(certificates: Option<&PathBuf>, key: Option<&PathBuf>) -> Result<Option<Tls>, Failure> {
    let both = certificates.zip(key);
    let read = both.map(|(certificates, key)| Tls::read(certificates, key));
    read.transpose().map_err(|error| Failure::Usage(error.to_string()))
}

pub(super) async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| Failure::Usage(format!("cannot listen on {address}: {error}")))?;
    let listening = listener.local_addr().map_err(Failure::Serve)?;
    Ok((listener, listening))
}

/// The proxies in these ranges.
pub(super) fn proxies(trusted: &[Range]) -> Proxies {
    let trusted = trusted.to_vec();
    Proxies::new(move |ip| trusted.iter().any(|range| range.contains(ip)))
}

/// Done when somebody says stop; listened for from the moment that this is called.
pub(super) fn told_to_stop() -> Result<impl Future<Output = ()>, Failure> {
    let mut terminated = signal(SignalKind::terminate()).map_err(Failure::Serve)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Failure::Serve)?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}
