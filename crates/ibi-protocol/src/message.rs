//! The messages between resolver and Archives, each the query of one HTTP GET (3).

mod error;
mod query;
mod registration;
mod url;

pub use error::MessageError;
pub use registration::{WireProtocol, WireRegistration};
pub use url::{Acknowledgment, SentUrl, UrlRequest};

use query::{QueryWriter, ReceivedQuery};

/// Limit on a query. Web servers usually accept less in a request line.
const MAX_QUERY_BYTES: usize = 32 * 1024;

/// A message, by its `servicesubject`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WireRequest {
    /// Resolver → Archive: confirm that you requested inclusion (3.3).
    InclusionConfirmation,
    /// Resolver → Archive: where is this item? (3.4)
    Url(UrlRequest),
    /// Resolver → Archive: a client was sent to your URL (3.5).
    Acknowledgment(Acknowledgment),
    /// Archive → resolver: the Archive is online (3.3).
    Inclusion(WireRegistration),
    /// Archive → resolver: the Archive goes offline (3.3).
    Exclusion(WireRegistration),
}

impl WireRequest {
    /// Parses a query, without its `?` and undecoded. Pairs may come in any order, unknown names
    /// are skipped, values are decoded once, and `+` is a space (D25).
    pub fn parse(query: &str) -> Result<Self, MessageError> {
        Self::parse_with_key(query, None)
    }

    /// Like [`WireRequest::parse`], with the registration key from a header, which keeps it out of
    /// logs (D15).
    pub fn parse_with_key(query: &str, key: Option<&str>) -> Result<Self, MessageError> {
        if query.len() > MAX_QUERY_BYTES {
            return Err(MessageError::TooLong { most: MAX_QUERY_BYTES });
        }
        let query_pairs = ReceivedQuery::new(query);
        match query_pairs.text("servicesubject")?.as_str() {
            "inclusionConfirmationRequest" => Ok(WireRequest::InclusionConfirmation),
            "urlRequest" => UrlRequest::read(&query_pairs).map(WireRequest::Url),
            "acknowledgment" => Acknowledgment::read(&query_pairs).map(WireRequest::Acknowledgment),
            "inclusionRequest" => WireRegistration::read(&query_pairs, key).map(WireRequest::Inclusion),
            "exclusionRequest" => WireRegistration::read(&query_pairs, key).map(WireRequest::Exclusion),
            other => Err(MessageError::unknown(other)),
        }
    }

    /// The `servicesubject`.
    pub fn subject(&self) -> &'static str {
        match self {
            WireRequest::InclusionConfirmation => "inclusionConfirmationRequest",
            WireRequest::Url(_) => "urlRequest",
            WireRequest::Acknowledgment(_) => "acknowledgment",
            WireRequest::Inclusion(_) => "inclusionRequest",
            WireRequest::Exclusion(_) => "exclusionRequest",
        }
    }

    /// The query, without `?`, its pairs in the order of the standard's examples. For an inclusion
    /// or exclusion it contains the registration key: never log it.
    pub fn to_query(&self) -> String {
        self.write(true)
    }

    /// The query without the registration key, which ibi servers send to each other in a header
    /// (D15).
    pub fn to_query_without_key(&self) -> String {
        self.write(false)
    }

    fn write(&self, with_key: bool) -> String {
        let mut query = QueryWriter::default();
        match self {
            WireRequest::InclusionConfirmation => query.push("servicesubject", self.subject()),
            WireRequest::Url(request) => request.write(&mut query, self.subject()),
            WireRequest::Acknowledgment(acknowledgment) => acknowledgment.write(&mut query, self.subject()),
            WireRequest::Inclusion(registration) | WireRequest::Exclusion(registration) => {
                query.push("servicesubject", self.subject());
                registration.write(&mut query, with_key);
            }
        }
        query.into_text()
    }
}
