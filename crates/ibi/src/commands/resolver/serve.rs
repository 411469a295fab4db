//! `ibi resolver serve`.

use std::sync::Arc;
use std::time::Duration;

use ibi_http::rate::RateLimiter;
use ibi_http::server;
use ibi_http::telemetry::ServerMetrics;
use ibi_resolver::web::{self, ResolverSite, ResolverSiteOptions};

use crate::cli::resolver::ResolverServeArgs;
use crate::commands::quotas;
use crate::commands::resolver::{clock, folder};
use crate::commands::server_setup::{self, ServerReload};
use crate::exit::{CommandError, CommandOutcome};
use crate::io::say;

/// Maximum time to send pending acknowledgments after a stop signal.
pub(crate) const ACKNOWLEDGMENT_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(command: &ResolverServeArgs) -> Result<CommandOutcome, CommandError> {
    command.trust.apply()?;
    server_setup::run(serve(command))
}

async fn serve(command: &ResolverServeArgs) -> Result<CommandOutcome, CommandError> {
    let rates = Arc::new(RateLimiter::new(quotas::read(&command.quotas)?));
    let tls = server_setup::tls(command.tls_cert.as_ref(), command.tls_key.as_ref())?;
    let data = folder(&command.data)?;
    let limits = server_setup::limits();
    let options = ResolverSiteOptions {
        allow_private: command.allow_private,
        public_url: None,
        proxies: server_setup::proxies(&command.trusted_proxy),
        scheme_proxies: command.proxy.iter().cloned().collect(),
        limits,
        clock: clock(),
        rates: Arc::clone(&rates),
    };
    let reload = ServerReload { tls: tls.clone(), rates, quotas: Some(command.quotas.clone()) };
    let site = Arc::new(ResolverSite::open(&data, options, ServerMetrics::start())?);
    let (listener, listening) = server_setup::listen(&command.listen).await?;
    let shutdown = server_setup::shutdown_signal()?;
    let reloading = server_setup::on_hangup(move || reload.clone().run())?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    server_setup::announce(&format!("{scheme}://{listening}/"));
    say(format_args!("online at {scheme}://{listening}/; stop with Ctrl-C"));
    let background = tokio::spawn(Arc::clone(&site).run_background_tasks());
    let stop = {
        let site = Arc::clone(&site);
        async move {
            shutdown.await;
            tracing::info!("stopping");
            site.stop();
        }
    };
    server::serve(listener, tls, limits, web::router(Arc::clone(&site)), stop).await;
    background.abort();
    reloading.abort();
    site.close(ACKNOWLEDGMENT_DRAIN_TIMEOUT).await;
    say(format_args!("offline"));
    Ok(CommandOutcome::Yes)
}
