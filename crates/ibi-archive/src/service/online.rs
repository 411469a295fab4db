//! Going on line and off line: the resolver is told, again and again until it has heard (clause 3.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ibi_http::outgoing::Client;
use ibi_protocol::{Pairs, Registration, Request};

/// Between two tries, at first and at most.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(300);

/// Between two times that a resolver is told again what it has confirmed.
const RENEWED: Duration = Duration::from_secs(600);

/// Why a resolver has not heard.
enum Failed {
    /// It does not know us, or not by this key.
    Refused,
    /// It is not reached, or says what cannot be understood.
    Silent(String),
}

/// How long going off line waits for the resolver.
const PATIENCE: Duration = Duration::from_secs(5);

/// An answer has two pairs.
const LONGEST: usize = 4096;

/// The resolver, and what it knows us by.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// The URL of its service.
    pub url: String,
    /// What is sent.
    pub registration: Registration,
    /// Other labels of the service, tried in turn where the first is refused: it may be registered
    /// in another form (clause 3.2).
    other_labels: Vec<String>,
    /// Which of them all is sent.
    chosen: Arc<AtomicUsize>,
}

impl Resolver {
    /// A resolver at a URL that knows us by one of these labels.
    pub fn new(url: String, registration: Registration, other_labels: Vec<String>) -> Self {
        Self { url, registration, other_labels, chosen: Arc::default() }
    }

    /// What is sent, under the label that is tried.
    fn registration(&self) -> Registration {
        let chosen = self.chosen.load(Ordering::Acquire);
        let other = chosen.checked_sub(1).and_then(|at| self.other_labels.get(at));
        let service = other.unwrap_or(&self.registration.service).clone();
        Registration { service, ..self.registration.clone() }
    }

    /// Tries the next label. Whether all were tried.
    fn try_next_label(&self) -> bool {
        let next = (self.chosen.load(Ordering::Acquire) + 1) % (self.other_labels.len() + 1);
        self.chosen.store(next, Ordering::Release);
        next == 0
    }

    /// Tells the resolver that the Archive is on line: again and again until it has confirmed it, and now and then after that,
    /// for it may have lost us, or another may have spoken in our name. It never ends.
    pub async fn go_on_line(&self, client: &Client) {
        let mut wait = FIRST;
        let mut confirmed = false;
        loop {
            match self.ask(client, Request::Inclusion(self.registration())).await {
                Ok(pairs) if pairs.get("status.confirmation") == Some("successful") => {
                    if !confirmed {
                        tracing::info!(resolver = self.url, "on line: the resolver has confirmed it");
                    }
                    confirmed = true;
                    wait = FIRST;
                    tokio::time::sleep(RENEWED).await;
                    continue;
                }
                Ok(pairs) => {
                    // Only these: whatever else is said may be what we sent, the key with it.
                    let archive = pairs.get("status.archive").unwrap_or("nothing");
                    let archive = archive.get(..20).unwrap_or(archive);
                    tracing::warn!(
                        resolver = self.url,
                        archive,
                        "the resolver has not confirmed; tried again"
                    );
                }
                Err(Failed::Refused) if !self.try_next_label() => {
                    let label = self.registration().service;
                    tracing::info!(
                        resolver = self.url,
                        label,
                        "refused under one label; tried under the next"
                    );
                }
                Err(Failed::Refused) => {
                    tracing::error!(
                        resolver = self.url,
                        "refused: the Archive is not registered there, or the key is wrong; ask the resolver's operator \
                         (`ibi resolver register`). Tried again, slowly"
                    );
                    wait = MOST;
                }
                Err(Failed::Silent(error)) => {
                    tracing::warn!(resolver = self.url, error, "the resolver is not reached; tried again");
                }
            }
            confirmed = false;
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(MOST);
        }
    }

    /// Tells it that the Archive goes off line, once.
    pub async fn go_off_line(&self, client: &Client) {
        let asked = self.ask(client, Request::Exclusion(self.registration()));
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(pairs)) if pairs.get("status.archive") == Some("excluded") => {
                tracing::info!(resolver = self.url, "off line: the resolver knows");
            }
            Ok(Ok(_)) => tracing::warn!(resolver = self.url, "the resolver did not take us off its list"),
            Ok(Err(Failed::Refused)) => tracing::warn!(resolver = self.url, "the resolver refused"),
            Ok(Err(Failed::Silent(error))) => {
                tracing::warn!(resolver = self.url, error, "the resolver is not reached");
            }
            Err(_) => tracing::warn!(resolver = self.url, "the resolver does not answer"),
        }
    }

    async fn ask(&self, client: &Client, request: Request) -> Result<Pairs, Failed> {
        let url = format!("{}?{}", self.url, request.to_query());
        let silent = |error: &dyn std::fmt::Display| Failed::Silent(error.to_string());
        let (status, answer) = client.get(&url, LONGEST).await.map_err(|error| silent(&error))?;
        if matches!(status.as_u16(), 403 | 429) {
            return Err(Failed::Refused);
        }
        if !status.is_success() {
            return Err(Failed::Silent(format!("it answered {status}")));
        }
        Pairs::read(&answer, &ibi_protocol::Limits::default()).map_err(|error| silent(&error))
    }
}
