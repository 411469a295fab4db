//! Asking others: bounded in time and size, without following anybody elsewhere.

mod guarded;
mod patient;

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

pub use guarded::{GuardedAnswer, GuardedClient};
pub use patient::{Answer, Patient};

/// Asks others over HTTP.
#[derive(Clone, Debug)]
pub struct Client(reqwest::Client);

/// Why there is no answer. The address is not told: a key may stand in it.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The client could not be made.
    #[error("cannot ask anybody over HTTP: {0}")]
    Client(String),
    /// Nobody answered, or not in time.
    #[error("no answer: {0}")]
    Silent(String),
    /// More than was asked for.
    #[error("the answer has more than {most} bytes")]
    TooLong {
        /// As many as are read.
        most: usize,
    },
}

impl Client {
    /// A client that waits so long for a whole answer.
    pub fn new(patience: Duration) -> Result<Self, AskError> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(patience)
            .timeout(patience)
            .no_proxy()
            .build();
        client.map(Self).map_err(|error| AskError::Client(error.without_url().to_string()))
    }

    /// Gets an answer of at most so many bytes.
    pub async fn get(&self, url: &str, most: usize) -> Result<(StatusCode, Bytes), AskError> {
        let silent = |error: reqwest::Error| AskError::Silent(reason(&error.without_url()));
        let mut response = self.0.get(url).send().await.map_err(silent)?;
        let status = response.status();
        let mut all = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(silent)? {
            if all.len() + piece.len() > most {
                return Err(AskError::TooLong { most });
            }
            all.extend_from_slice(&piece);
        }
        Ok((status, all.into()))
    }
}

/// An error with what caused it.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
