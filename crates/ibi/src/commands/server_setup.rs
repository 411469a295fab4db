//! Setup shared by all servers of this program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ibi_archive::access::AddressRange;
use ibi_http::client::TrustedProxies;
use ibi_http::descriptors::DescriptorBudget;
use ibi_http::rate::RateLimiter;
use ibi_http::{ServerLimits, ServerTls, telemetry};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::cli::quotas::QuotaArgs;
use crate::commands::quotas;
use crate::exit::{CommandError, CommandOutcome};
use crate::io::StdoutWriter;

/// Runs a server until it ends, with logging.
pub(super) fn run(
    server: impl Future<Output = Result<CommandOutcome, CommandError>>,
) -> Result<CommandOutcome, CommandError> {
    telemetry::start_log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    // Handles SIGHUP from the start, so that it does not end the process before a reload handler is
    // installed.
    let server = async {
        let _early = signal(SignalKind::hangup()).map_err(CommandError::Serve)?;
        server.await
    };
    let ended = runtime.map_err(CommandError::Serve).and_then(|runtime| runtime.block_on(server));
    telemetry::flush_log();
    ended
}

/// Raises the limit of open files and derives the server limits from it.
pub(super) fn limits() -> ServerLimits {
    let budget = DescriptorBudget::raise();
    let limits = ServerLimits::within(budget);
    tracing::info!(open_files = budget.limit(), connections = limits.connections, "limits");
    limits
}

/// Prints the address on standard output. A server without standard output keeps serving.
pub(super) fn announce(url: &str) {
    let mut output = StdoutWriter::new();
    let printed = output.text(format_args!("{url}\n")).and_then(|()| output.flush());
    if let Err(error) = printed {
        tracing::warn!(%error, "cannot print the address");
    }
}

pub(super) fn tls(
    certificates: Option<&PathBuf>,
    key: Option<&PathBuf>,
) -> Result<Option<ServerTls>, CommandError> {
    let both = certificates.zip(key);
    let read = both.map(|(certificates, key)| ServerTls::read(certificates, key));
    read.transpose().map_err(|error| CommandError::Usage(error.to_string()))
}

pub(super) async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), CommandError> {
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| CommandError::Listen { address: address.to_owned(), error })?;
    let listening = listener.local_addr().map_err(CommandError::Serve)?;
    Ok((listener, listening))
}

/// Trusts proxies in these ranges.
pub(super) fn proxies(trusted: &[AddressRange]) -> TrustedProxies {
    let trusted = trusted.to_vec();
    TrustedProxies::new(move |ip| trusted.iter().any(|range| range.contains(ip)))
}

/// Completes on SIGTERM or SIGINT; signals are caught from the moment of the call.
pub(super) fn shutdown_signal() -> Result<impl Future<Output = ()>, CommandError> {
    let mut terminated = signal(SignalKind::terminate()).map_err(CommandError::Serve)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(CommandError::Serve)?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

/// The configuration that a server reads from files and reloads on SIGHUP.
#[derive(Clone)]
pub(super) struct ServerReload {
    pub(super) tls: Option<ServerTls>,
    pub(super) rates: Arc<RateLimiter>,
    pub(super) quotas: Option<QuotaArgs>,
}

impl ServerReload {
    /// Reloads everything. If something is invalid, logs an error and keeps the previous value.
    pub(super) async fn run(self) {
        let read = tokio::task::spawn_blocking(move || {
            match self.tls.as_ref().map(ServerTls::reload) {
                Some(Ok(())) => tracing::info!("reloaded certificate and key"),
                Some(Err(error)) => {
                    tracing::error!(%error, "cannot reload the certificate; keeping the previous one");
                }
                None => {}
            }
            match self.quotas.as_ref().map(quotas::read) {
                Some(Ok(quotas)) => self.rates.replace(quotas),
                Some(Err(error)) => {
                    tracing::error!(%error, "cannot reload the quotas; keeping the previous ones");
                }
                None => {}
            }
        });
        let _ = read.await;
    }
}

/// Runs `reload` on every SIGHUP, which then no longer ends the process.
pub(super) fn on_hangup<F: Future<Output = ()> + Send>(
    reload: impl Fn() -> F + Send + 'static,
) -> Result<JoinHandle<()>, CommandError> {
    let mut hung_up = signal(SignalKind::hangup()).map_err(CommandError::Serve)?;
    Ok(tokio::spawn(async move {
        while hung_up.recv().await.is_some() {
            tracing::info!("reloading configuration");
            reload().await;
        }
    }))
}
