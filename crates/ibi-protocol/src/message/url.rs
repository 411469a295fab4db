//! The resolver asks an Archive for the URL of an item, and tells it that its URL was chosen (3.4, 3.5).

use std::net::IpAddr;

use super::MessageError;
use super::query::{Given, Query, decode, encode};
use crate::answer::{ContentType, State};
use crate::file_path::FilePath;
use crate::forms::Forms;
use crate::key::is_key;
use crate::shown::shown;
use crate::verb::Verbs;

/// The most addresses that are read: the client and its proxies.
const MOST_ADDRESSES: usize = 32;

/// `urlRequest`: where is this item, or what is related to it?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlRequest {
    /// `clientinformation.ipaddress`: the client's address, then its proxies'. At least one.
    pub client: Vec<IpAddr>,
    /// `parsedibiurl.ibi`: a label of any form, in the spelling that was asked for.
    pub ibi: String,
    /// `parsedibiurl.filepath`: a file in what is asked for.
    pub file: Option<FilePath>,
    /// `parsedibiurl.verblist`.
    pub verbs: Verbs,
    /// `clientinformation.wants=all` without a `parsedibiurl.verblist`: the whole list of
    /// properties is wanted, and not only those of the item itself (D38).
    pub wants_all: bool,
}

/// The pair that asks for all properties, and its value.
const WANTS: &str = "clientinformation.wants";
const ALL_PROPERTIES: &str = "all";

impl UrlRequest {
    pub(super) fn read(given: &Given<'_>) -> Result<Self, MessageError> {
        let file = "parsedibiurl.filepath";
        let verbs = "parsedibiurl.verblist";
        let list = given.optional(verbs)?;
        let wants_all = list.is_none() && given.optional(WANTS)?.as_deref() == Some(ALL_PROPERTIES);
        Ok(Self {
            wants_all,
            client: client(given)?,
            ibi: given.label("parsedibiurl.ibi")?,
            file: FilePath::new(&decode(given.raw(file)?.unwrap_or_default()))
                .map_err(|why| MessageError::value(file, why))?,
            verbs: Verbs::parse(&list.unwrap_or_default()).map_err(|why| MessageError::value(verbs, why))?,
        })
    }

    pub(super) fn write(&self, query: &mut Query, subject: &str) {
        query.push("clientinformation.ipaddress", &spaced(&self.client));
        if self.wants_all && self.verbs.is_empty() {
            query.push(WANTS, ALL_PROPERTIES);
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
    /// `ibi`: the forms of what the URL leads to, where they are known.
    pub ibi: Option<Forms>,
    /// `state`: `Original` or `Copy`. Always sent, but not demanded of others (D19).
    pub state: Option<State>,
    /// `url`: the one that was chosen.
    pub url: SentUrl,
    /// `url.persistent`: what the client asked for.
    pub persistent: SentUrl,
    /// `urlkey`: that of the answer that had the URL.
    pub urlkey: String,
}

impl Acknowledgment {
    pub(super) fn read(given: &Given<'_>) -> Result<Self, MessageError> {
        let sent = |name| given.raw(name)?.map(SentUrl::received).ok_or(MessageError::Missing { name });
        let urlkey = given.text("urlkey")?;
        if !is_key(&urlkey) {
            return Err(MessageError::value("urlkey", crate::key::KeyError));
        }
        Ok(Self {
            client: client(given)?,
            contenttype: given.read("contenttype")?,
            ibi: match given.optional("ibi")? {
                None => None,
                Some(_) => Some(given.read::<Forms>("ibi")?).filter(|forms| !forms.labels().is_empty()),
            },
            state: match given.optional("state")? {
                None => None,
                Some(_) => Some(state(given)?),
            },
            url: sent("url")?,
            persistent: sent("url.persistent")?,
            urlkey,
        })
    }

    pub(super) fn write(&self, query: &mut Query, subject: &str) {
        query.push("clientinformation.ipaddress", &spaced(&self.client));
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

/// A URL in a message, as it was sent. The norm's table has `%` encoded there, its examples have not (D25): so it is
/// kept as it came, and what it means is asked of [`SentUrl::is`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SentUrl(String);

impl SentUrl {
    /// A URL to send, encoded as the table has it.
    pub fn new(url: &str) -> Self {
        Self(encode(url.as_bytes()))
    }

    fn received(value: &str) -> Self {
        Self(value.to_owned())
    }

    /// As it stands in the query.
    pub fn as_sent(&self) -> &str {
        &self.0
    }

    /// Decoded once, for those to whom the norm's table is the truth; what is not UTF-8 then is shown as such.
    pub fn decoded(&self) -> String {
        String::from_utf8_lossy(&decode(&self.0)).into_owned()
    }

    /// Whether it is that URL, decoded once or not at all (D25).
    pub fn is(&self, url: &str) -> bool {
        self.0 == url || decode(&self.0) == url.as_bytes()
    }
}

fn client(given: &Given<'_>) -> Result<Vec<IpAddr>, MessageError> {
    let name = "clientinformation.ipaddress";
    let text = given.text(name)?;
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(MessageError::Missing { name });
    }
    if words.len() > MOST_ADDRESSES {
        return Err(MessageError::value(name, format!("there are more than {MOST_ADDRESSES} addresses")));
    }
    let read = |word: &&str| {
        let why =
            || format!("`{}` is no IP address: separate the client's and its proxies' by %20", shown(word));
        word.parse().map_err(|_| MessageError::value(name, why()))
    };
    words.iter().map(read).collect()
}

/// What was chosen is there: nobody is sent to what was removed.
fn state(given: &Given<'_>) -> Result<State, MessageError> {
    match given.read("state")? {
        State::Deleted => Err(MessageError::value("state", "a client cannot be sent to what is Deleted")),
        state => Ok(state),
    }
}

fn spaced(addresses: &[IpAddr]) -> String {
    let words: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    words.join(" ")
}
