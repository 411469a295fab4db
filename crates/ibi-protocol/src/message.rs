//! The messages that resolver and Archives send each other, each the query of one HTTP GET (3).

mod error;
mod query;
mod registration;
mod url;

pub use error::MessageError;
pub use registration::{Protocol, Registration};
pub use url::{Acknowledgment, SentUrl, UrlRequest};

use query::{Given, Query};

/// The longest query that is read, in bytes. What web servers read of a request line is less, as a rule.
const LONGEST: usize = 32 * 1024;

/// A message, by its `servicesubject`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Request {
    /// Resolver → Archive: did you ask to be included? (3.3)
    InclusionConfirmation,
    /// Resolver → Archive: where is this item? (3.4)
    Url(UrlRequest),
    /// Resolver → Archive: a client was sent to your URL (3.5).
    Acknowledgment(Acknowledgment),
    /// Archive → resolver: I am on line (3.3).
    Inclusion(Registration),
    /// Archive → resolver: I go off line (3.3).
    Exclusion(Registration),
}

impl Request {
    /// Reads a query: what stands after the `?`, undecoded. Pairs come in any order, names that we do not know are
    /// skipped, values are decoded once, and `+` is a space (D25).
    pub fn parse(query: &str) -> Result<Self, MessageError> {
        Self::parse_with_key(query, None)
    }

    /// The same, with the registration key from a header, which keeps it out of logs (D15).
    pub fn parse_with_key(query: &str, key: Option<&str>) -> Result<Self, MessageError> {
        if query.len() > LONGEST {
            return Err(MessageError::TooLong { most: LONGEST });
        }
        let given = Given::new(query);
        match given.text("servicesubject")?.as_str() {
            "inclusionConfirmationRequest" => Ok(Request::InclusionConfirmation),
            "urlRequest" => UrlRequest::read(&given).map(Request::Url),
            "acknowledgment" => Acknowledgment::read(&given).map(Request::Acknowledgment),
            "inclusionRequest" => Registration::read(&given, key).map(Request::Inclusion),
            "exclusionRequest" => Registration::read(&given, key).map(Request::Exclusion),
            other => Err(MessageError::unknown(other)),
        }
    }

    /// The `servicesubject`.
    pub fn subject(&self) -> &'static str {
        match self {
            Request::InclusionConfirmation => "inclusionConfirmationRequest",
            Request::Url(_) => "urlRequest",
            Request::Acknowledgment(_) => "acknowledgment",
            Request::Inclusion(_) => "inclusionRequest",
            Request::Exclusion(_) => "exclusionRequest",
        }
    }

    /// The query, without `?`, with its pairs in the order of the norm's conversations. That of an inclusion or
    /// exclusion has the registration key in it: never log it.
    pub fn to_query(&self) -> String {
        self.write(true)
    }

    /// The query without the registration key, which goes in a header between our own servers (D15).
    pub fn to_query_without_key(&self) -> String {
        self.write(false)
    }

    fn write(&self, with_key: bool) -> String {
        let mut query = Query::default();
        match self {
            Request::InclusionConfirmation => query.push("servicesubject", self.subject()),
            Request::Url(request) => request.write(&mut query, self.subject()),
            Request::Acknowledgment(acknowledgment) => acknowledgment.write(&mut query, self.subject()),
            Request::Inclusion(registration) | Request::Exclusion(registration) => {
                query.push("servicesubject", self.subject());
                registration.write(&mut query, with_key);
            }
        }
        query.into_text()
    }
}
