//! Registration with the resolver when going online and offline, with retries until it confirms
//! (clause 3.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ibi_http::CertificateProblem;
use ibi_http::outgoing::{HttpClient, HttpClientError};
use ibi_protocol::location::FOLLOW_TOKEN_HEADER;
use ibi_protocol::{Pairs, WireRegistration, WireRequest};

/// Initial and maximum delay between retries.
const FIRST_REGISTRATION_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_REGISTRATION_RETRY_DELAY: Duration = Duration::from_secs(300);

/// How often a confirmed registration is renewed.
const REGISTRATION_RENEWAL_INTERVAL: Duration = Duration::from_secs(600);

/// Why a registration failed.
enum ServiceRegistrarError {
    /// The resolver does not know this Archive, or the key is wrong.
    Refused,
    /// The resolver cannot be asked over TLS.
    Certificate(CertificateProblem),
    /// The resolver is unreachable or its response is invalid.
    Silent(String),
}

/// How long going offline waits for the resolver.
const DEREGISTRATION_TIMEOUT: Duration = Duration::from_secs(5);

/// A response has two pairs.
const MAX_REGISTRATION_REPLY_BYTES: usize = 4096;

/// A resolver, and the credentials registered there.
#[derive(Debug, Clone)]
pub struct ServiceRegistrar {
    /// The URL of the resolver's service.
    pub url: String,
    /// The registration to send.
    pub registration: WireRegistration,
    /// The token with which the resolver may follow this Archive (4.4).
    follow_token: String,
    /// Other labels of the service, tried in turn if the first is refused: the resolver may have
    /// registered another form (clause 3.2).
    other_labels: Vec<String>,
    /// Index of the label in use; 0 is the first.
    chosen: Arc<AtomicUsize>,
}

impl ServiceRegistrar {
    /// A resolver at `url` that knows this Archive by one of these labels.
    pub fn new(
        url: String,
        registration: WireRegistration,
        follow_token: String,
        other_labels: Vec<String>,
    ) -> Self {
        Self { url, registration, follow_token, other_labels, chosen: Arc::default() }
    }

    /// The registration, with the label in use.
    fn registration(&self) -> WireRegistration {
        let chosen = self.chosen.load(Ordering::Acquire);
        let other = chosen.checked_sub(1).and_then(|at| self.other_labels.get(at));
        let service = other.unwrap_or(&self.registration.service).clone();
        WireRegistration { service, ..self.registration.clone() }
    }

    /// Switches to the next label. Returns whether all were tried.
    fn try_next_label(&self) -> bool {
        let next = (self.chosen.load(Ordering::Acquire) + 1) % (self.other_labels.len() + 1);
        self.chosen.store(next, Ordering::Release);
        next == 0
    }

    /// Registers the Archive as online: retries until the resolver confirms, then renews
    /// periodically, because the resolver may have lost the entry or someone else may have replaced
    /// it. Never returns.
    pub async fn keep_registered(&self, client: &HttpClient) {
        let mut wait = FIRST_REGISTRATION_RETRY_DELAY;
        let mut confirmed = false;
        loop {
            match self.send_request(client, WireRequest::Inclusion(self.registration())).await {
                Ok(pairs) if pairs.get("status.confirmation") == Some("successful") => {
                    if !confirmed {
                        tracing::info!(resolver = self.url, "online: confirmed by the resolver");
                    }
                    confirmed = true;
                    wait = FIRST_REGISTRATION_RETRY_DELAY;
                    tokio::time::sleep(REGISTRATION_RENEWAL_INTERVAL).await;
                    continue;
                }
                Ok(pairs) => {
                    // Log nothing else: the rest of the response may echo our request, including
                    // the key.
                    let archive = pairs.get("status.archive").unwrap_or("nothing");
                    let archive = archive.get(..20).unwrap_or(archive);
                    let code = pairs.get("status.certificate").unwrap_or_default();
                    if let Some(problem) = CertificateProblem::from_code(code) {
                        self.report_own_certificate(&problem);
                    } else {
                        tracing::warn!(
                            resolver = self.url,
                            archive,
                            "the resolver has not confirmed; retrying"
                        );
                    }
                }
                Err(ServiceRegistrarError::Refused) if !self.try_next_label() => {
                    let label = self.registration().service;
                    tracing::info!(resolver = self.url, label, "refused under one label; trying the next");
                }
                Err(ServiceRegistrarError::Refused) => {
                    tracing::error!(
                        resolver = self.url,
                        "refused: the Archive is not registered there, or the key is wrong; contact the \
                         resolver's operator (`ibi resolver register`). Retrying slowly"
                    );
                    wait = MAX_REGISTRATION_RETRY_DELAY;
                }
                Err(ServiceRegistrarError::Certificate(problem)) => self.report_certificate(&problem),
                Err(ServiceRegistrarError::Silent(error)) => {
                    tracing::warn!(resolver = self.url, error, "cannot reach the resolver; retrying");
                }
            }
            confirmed = false;
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MAX_REGISTRATION_RETRY_DELAY);
        }
    }

    /// The resolver called back, and did not accept the certificate here.
    fn report_own_certificate(&self, problem: &CertificateProblem) {
        tracing::error!(
            resolver = self.url,
            address = self.registration.address,
            problem = %problem,
            next = problem.next_step_of_owner(),
            "the resolver cannot call this Archive back over TLS; retrying"
        );
    }

    /// The key was not sent: TLS failed before.
    fn report_certificate(&self, problem: &CertificateProblem) {
        tracing::error!(
            resolver = self.url,
            problem = problem.for_operator(),
            "the resolver's certificate is invalid, so the request was not sent; retrying"
        );
    }

    /// Tells the resolver, once, that the Archive goes offline.
    pub async fn deregister(&self, client: &HttpClient) {
        let asked = self.send_request(client, WireRequest::Exclusion(self.registration()));
        match tokio::time::timeout(DEREGISTRATION_TIMEOUT, asked).await {
            Ok(Ok(pairs)) if pairs.get("status.archive") == Some("excluded") => {
                tracing::info!(resolver = self.url, "offline: the resolver was notified");
            }
            Ok(Ok(_)) => tracing::warn!(resolver = self.url, "the resolver did not confirm the exclusion"),
            Ok(Err(ServiceRegistrarError::Refused)) => {
                tracing::warn!(resolver = self.url, "the resolver refused");
            }
            Ok(Err(ServiceRegistrarError::Certificate(problem))) => self.report_certificate(&problem),
            Ok(Err(ServiceRegistrarError::Silent(error))) => {
                tracing::warn!(resolver = self.url, error, "cannot reach the resolver");
            }
            Err(_) => tracing::warn!(resolver = self.url, "the resolver does not answer"),
        }
    }

    async fn send_request(
        &self,
        client: &HttpClient,
        request: WireRequest,
    ) -> Result<Pairs, ServiceRegistrarError> {
        let url = format!("{}?{}", self.url, request.to_query());
        let silent = |error: &dyn std::fmt::Display| ServiceRegistrarError::Silent(error.to_string());
        let headers = [(FOLLOW_TOKEN_HEADER, self.follow_token.as_str())];
        let asked = client.get_with(&url, &headers, MAX_REGISTRATION_REPLY_BYTES).await;
        let (status, answer) = asked.map_err(|error| match error {
            HttpClientError::Certificate(problem) => ServiceRegistrarError::Certificate(problem),
            other => silent(&other),
        })?;
        // Also a key that was once wrong too often is answered with 429: later, it may be right.
        if status.as_u16() == 403 {
            return Err(ServiceRegistrarError::Refused);
        }
        if !status.is_success() {
            return Err(ServiceRegistrarError::Silent(format!("it answered {status}")));
        }
        Pairs::read(&answer, &ibi_protocol::PairsLimits::default()).map_err(|error| silent(&error))
    }
}
