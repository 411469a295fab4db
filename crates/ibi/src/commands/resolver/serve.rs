//! `ibi resolver serve`.

use std::sync::Arc;
use std::time::Duration;

use ibi_http::telemetry::Figures;
use ibi_http::{Limits, server};
use ibi_resolver::web::{self, Site, SiteOptions};

use crate::cli::resolver::Serve;
use crate::commands::resolver::{clock, folder};
use crate::commands::serving;
use crate::exit::{Answer, Failure};
use crate::io::{Output, say};

/// How long acknowledgments may still be sent after it was told to stop.
pub(crate) const LAST: Duration = Duration::from_secs(5);

pub(crate) fn run(command: &Serve) -> Result<Answer, Failure> {
    serving::run(serve(command))
}

async fn serve(command: &Serve) -> Result<Answer, Failure> {
    let tls = serving::tls(command.tls_cert.as_ref(), command.tls_key.as_ref())?;
    let data = folder(&command.data)?;
    let limits = Limits::default();
    let options = SiteOptions {
        allow_private: command.allow_private,
        public_url: None,
        proxies: serving::proxies(&command.trusted_proxy),
        scheme_proxies: command.proxy.iter().cloned().collect(),
        limits,
        clock: clock(),
    };
    let site = Arc::new(Site::open(&data, options, Figures::start())?);
    let (listener, listening) = serving::listen(&command.listen).await?;
    let told = serving::told_to_stop()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut output = Output::new();
    output.text(format_args!("{scheme}://{listening}/\n"))?;
    output.flush()?;
    say(format_args!("on line at {scheme}://{listening}/; Ctrl-C stops it"));
    let tending = tokio::spawn(Arc::clone(&site).tend());
    let stop = {
        let site = Arc::clone(&site);
        async move {
            told.await;
            tracing::info!("stopping");
            site.stop();
        }
    };
    server::serve(listener, tls, limits, web::router(Arc::clone(&site)), stop).await;
    tending.abort();
    site.close(LAST).await;
    say(format_args!("off line"));
    Ok(Answer::Yes)
}
