//! The resolver queries an Archive for the URL of an item, and acknowledges the URL that it used
//! (3.4, 3.5).

use std::net::IpAddr;

use super::MessageError;
use super::query::{QueryWriter, ReceivedQuery, decode, encode};
use crate::answer::{ContentType, State};
use crate::file_path::FilePath;
use crate::forms::LabelForms;
use crate::key::is_key;
use crate::untrusted_text::quote_untrusted;
use crate::verb::Verbs;

/// Limit on client addresses: the client and its proxies.
const MAX_CLIENT_ADDRESSES: usize = 32;

/// `urlRequest`: asks for the URLs of an item or of related items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlRequest {
    /// `clientinformation.ipaddress`: the client's address, then its proxies'. At least one.
    pub client: Vec<IpAddr>,
    /// `parsedibiurl.ibi`: a label of any form, in the client's spelling.
    pub ibi: String,
    /// `parsedibiurl.filepath`: the requested file within the item.
    pub file: Option<FilePath>,
    /// `parsedibiurl.verblist`.
    pub verbs: Verbs,
    /// `clientinformation.wants=all` without a `parsedibiurl.verblist`: requests all properties,
    /// not only those of the item itself (D38).
    pub wants_all: bool,
}

/// The pair that requests all properties, and its value.
const WANTS_PAIR: &str = "clientinformation.wants";
const WANTS_ALL_VALUE: &str = "all";

impl UrlRequest {
    pub(super) fn read(query_pairs: &ReceivedQuery<'_>) -> Result<Self, MessageError> {
        let file = "parsedibiurl.filepath";
        let verbs = "parsedibiurl.verblist";
        let list = query_pairs.optional(verbs)?;
        let wants_all =
            list.is_none() && query_pairs.optional(WANTS_PAIR)?.as_deref() == Some(WANTS_ALL_VALUE);
        Ok(Self {
            wants_all,
            client: client(query_pairs)?,
            ibi: query_pairs.label("parsedibiurl.ibi")?,
            file: FilePath::new(&decode(query_pairs.raw(file)?.unwrap_or_default()))
                .map_err(|why| MessageError::value(file, why))?,
            verbs: Verbs::parse(&list.unwrap_or_default()).map_err(|why| MessageError::value(verbs, why))?,
        })
    }

    pub(super) fn write(&self, query: &mut QueryWriter, subject: &str) {
        query.push("clientinformation.ipaddress", &join_addresses(&self.client));
        if self.wants_all && self.verbs.is_empty() {
            query.push(WANTS_PAIR, WANTS_ALL_VALUE);
        }
        if let Some(file) = &self.file {
            query.push_encoded("parsedibiurl.filepath", &encode(file.as_bytes()));
        }
        query.push("parsedibiurl.ibi", &self.ibi);
        if !self.verbs.is_empty() {
            query.push("parsedibiurl.verblist", &self.verbs.to_string());
        }
        query.push("servicesubject", subject);
    }
}

/// `acknowledgment`: a client was sent to this URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgment {
    /// `clientinformation.ipaddress`: the client's address, then its proxies'. At least one.
    pub client: Vec<IpAddr>,
    /// `contenttype`.
    pub contenttype: ContentType,
    /// `ibi`: the labels of the item that the URL leads to, if known.
    pub ibi: Option<LabelForms>,
    /// `state`: `Original` or `Copy`. Always sent, but optional on receipt (D19).
    pub state: Option<State>,
    /// `url`: the URL that the client was sent to.
    pub url: SentUrl,
    /// `url.persistent`: the persistent URL that the client requested.
    pub persistent: SentUrl,
    /// `urlkey`: the key from the answer with that URL.
    pub urlkey: String,
}

impl Acknowledgment {
    pub(super) fn read(query_pairs: &ReceivedQuery<'_>) -> Result<Self, MessageError> {
        let url_of =
            |name| query_pairs.raw(name)?.map(SentUrl::received).ok_or(MessageError::Missing { name });
        let urlkey = query_pairs.text("urlkey")?;
        if !is_key(&urlkey) {
            return Err(MessageError::value("urlkey", crate::key::RegistrationKeyError));
        }
        Ok(Self {
            client: client(query_pairs)?,
            contenttype: query_pairs.read("contenttype")?,
            ibi: match query_pairs.optional("ibi")? {
                None => None,
                Some(_) => {
                    Some(query_pairs.read::<LabelForms>("ibi")?).filter(|forms| !forms.labels().is_empty())
                }
            },
            state: match query_pairs.optional("state")? {
                None => None,
                Some(_) => Some(state(query_pairs)?),
            },
            url: url_of("url")?,
            persistent: url_of("url.persistent")?,
            urlkey,
        })
    }

    pub(super) fn write(&self, query: &mut QueryWriter, subject: &str) {
        query.push("clientinformation.ipaddress", &join_addresses(&self.client));
        query.push("contenttype", self.contenttype.as_str());
        if let Some(forms) = &self.ibi {
            query.push("ibi", &forms.to_string());
        }
        query.push("servicesubject", subject);
        if let Some(state) = self.state {
            query.push("state", state.as_str());
        }
        query.push_encoded("url", self.url.as_sent());
        query.push_encoded("url.persistent", self.persistent.as_sent());
        query.push("urlkey", &self.urlkey);
    }
}

/// A URL in a message, as sent. The standard's table encodes `%` there, its examples do not (D25).
/// The text is kept verbatim; compare it with [`SentUrl::matches_url`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SentUrl(String);

impl SentUrl {
    /// A URL to send, encoded as in the standard's table.
    pub fn new(url: &str) -> Self {
        Self(encode(url.as_bytes()))
    }

    fn received(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// The text as it is in the query.
    pub fn as_sent(&self) -> &str {
        &self.0
    }

    /// Decoded once, as in the standard's table; bytes that are not UTF-8 are replaced.
    pub fn decoded(&self) -> String {
        String::from_utf8_lossy(&decode(&self.0)).into_owned()
    }

    /// Whether it is that URL, decoded once or not at all (D25).
    pub fn matches_url(&self, url: &str) -> bool {
        self.0 == url || decode(&self.0) == url.as_bytes()
    }
}

fn client(query_pairs: &ReceivedQuery<'_>) -> Result<Vec<IpAddr>, MessageError> {
    let name = "clientinformation.ipaddress";
    let text = query_pairs.text(name)?;
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(MessageError::Missing { name });
    }
    if words.len() > MAX_CLIENT_ADDRESSES {
        return Err(MessageError::value(
            name,
            format!("there are more than {MAX_CLIENT_ADDRESSES} addresses, which is the limit"),
        ));
    }
    let read = |word: &&str| {
        let why = || {
            format!(
                "`{}` is not an IP address: separate the client's and its proxies' by %20",
                quote_untrusted(word)
            )
        };
        word.parse().map_err(|_| MessageError::value(name, why()))
    };
    words.iter().map(read).collect()
}

/// A client is never sent to a removed item.
fn state(query_pairs: &ReceivedQuery<'_>) -> Result<State, MessageError> {
    match query_pairs.read("state")? {
        State::Deleted => Err(MessageError::value("state", "a client cannot be sent to a Deleted item")),
        state => Ok(state),
    }
}

fn join_addresses(addresses: &[IpAddr]) -> String {
    let words: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    words.join(" ")
}
