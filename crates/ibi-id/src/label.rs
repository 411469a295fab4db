//! A label in any of its three forms, distinguished by shape (1.3).

mod diagnosis;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;

use crate::uniqueness::{NotUnique, host_not_unique, ip_not_unique};
use crate::{Host, Ibip, Instant, Legacy, ParseError, Repository};
use diagnosis::diagnose;

/// A label. It keeps its original spelling, prints the canonical one, and equals every other
/// spelling of the same identifier.
///
/// `Label<&str>` borrows the text without allocating; `Label` owns it.
///
/// ```
/// use ibi_id::Label;
/// let found: Label = "sid.INPE.br/mtc-m18@80/2009/02.16.17.46".parse()?;
/// assert_eq!(found.to_string(), "sid.inpe.br/mtc-m18/2009/02.16.17.46");
/// assert_eq!(found, Label::parse("sid.inpe.br./mtc-m18/2009/02.16.17.46.00")?);
/// # Ok::<(), ibi_id::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Label<S = Box<str>> {
    /// Uniform repository name, domain based (1.1).
    Repository(Repository<S>),
    /// Opaque, IP based (1.2).
    Ibip(Ibip<S>),
    /// From before 2009 (1.3).
    Legacy(Legacy<S>),
}

/// The form of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `rep`: domain based (1.1).
    Repository,
    /// `ibip`: opaque, IP based (1.2).
    Ibip,
    /// `legacy`: from before 2009 (1.3).
    Legacy,
}

impl Form {
    /// `rep`, `ibip` or `legacy`, as on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Repository => "rep",
            Form::Ibip => "ibip",
            Form::Legacy => "legacy",
        }
    }
}

impl<'a> Label<&'a str> {
    /// Parses a label of any form. The forms are disjoint: only `rep` has three slashes, and every
    /// legacy label has a `Z` in its first word, which is not allowed in an `ibip`.
    #[inline]
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        match Ibip::read(text) {
            Ok(label) => Ok(Label::Ibip(label)),
            Err(_) => match Repository::parse(text) {
                Ok(label) => Ok(Label::Repository(label)),
                Err(as_repository) => match Legacy::parse(text) {
                    Ok(label) => Ok(Label::Legacy(label)),
                    Err(as_legacy) => Err(diagnose(text, as_repository, as_legacy)),
                },
            },
        }
    }
}

impl<S: AsRef<str>> Label<S> {
    /// Its form.
    pub fn form(&self) -> Form {
        match self {
            Label::Repository(_) => Form::Repository,
            Label::Ibip(_) => Form::Ibip,
            Label::Legacy(_) => Form::Legacy,
        }
    }

    /// The label as spelled.
    pub fn spelling(&self) -> &str {
        match self {
            Label::Repository(label) => label.spelling(),
            Label::Ibip(label) => label.spelling(),
            Label::Legacy(label) => label.spelling(),
        }
    }

    /// The part before the instant, as spelled.
    pub fn prefix(&self) -> &str {
        match self {
            Label::Repository(label) => label.prefix(),
            Label::Ibip(label) => label.prefix(),
            Label::Legacy(label) => label.prefix(),
        }
    }

    /// The part that encodes the instant, as spelled.
    pub fn suffix(&self) -> &str {
        match self {
            Label::Repository(label) => label.suffix(),
            Label::Ibip(label) => label.suffix(),
            Label::Legacy(label) => label.suffix(),
        }
    }

    /// Whether both labels have the same prefix, in any spelling; `None` for labels of different
    /// forms, and for legacy labels, whose prefix is opaque.
    pub fn shares_prefix<T: AsRef<str>>(&self, other: &Label<T>) -> Option<bool> {
        match (self, other) {
            (Label::Repository(a), Label::Repository(b)) => {
                Some(a.host() == b.host() && a.port() == b.port())
            }
            (Label::Ibip(a), Label::Ibip(b)) => Some(a.ip() == b.ip() && a.port() == b.port()),
            _ => None,
        }
    }

    /// The host of a repository name.
    pub fn host(&self) -> Option<Host<'_>> {
        if let Label::Repository(label) = self { Some(label.host()) } else { None }
    }

    /// The address of an IBIp.
    pub fn ip(&self) -> Option<IpAddr> {
        if let Label::Ibip(label) = self { Some(label.ip()) } else { None }
    }

    /// The port, explicit or default; `None` for legacy labels.
    pub fn port(&self) -> Option<u16> {
        match self {
            Label::Repository(label) => Some(label.port()),
            Label::Ibip(label) => Some(label.port()),
            Label::Legacy(_) => None,
        }
    }

    /// The instant at which it was minted.
    pub fn instant(&self) -> Instant {
        match self {
            Label::Repository(label) => label.instant(),
            Label::Ibip(label) => label.instant(),
            Label::Legacy(label) => label.instant(),
        }
    }

    /// Whether its host or address is globally unique, with the reason if not (1.6). `None` for
    /// legacy labels, whose prefix is opaque.
    pub fn globally_unique(&self) -> Option<Result<(), NotUnique>> {
        let reason = match self {
            Label::Repository(label) => host_not_unique(label.host()),
            Label::Ibip(label) => ip_not_unique(label.ip()),
            Label::Legacy(_) => return None,
        };
        Some(reason.map_or(Ok(()), Err))
    }

    /// The same label with its own copy of the text.
    pub fn into_owned(self) -> Label {
        match self {
            Label::Repository(label) => Label::Repository(label.into_owned()),
            Label::Ibip(label) => Label::Ibip(label.into_owned()),
            Label::Legacy(label) => Label::Legacy(label.into_owned()),
        }
    }
}

impl FromStr for Label {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Label::parse(text).map(Label::into_owned)
    }
}

/// By meaning (1.3): host or address, port and instant; legacy labels by bytes. Labels of different
/// forms are never equal: only an Archive's record connects them.
impl<S: AsRef<str>, T: AsRef<str>> PartialEq<Label<T>> for Label<S> {
    fn eq(&self, other: &Label<T>) -> bool {
        match (self, other) {
            (Label::Repository(a), Label::Repository(b)) => a == b,
            (Label::Ibip(a), Label::Ibip(b)) => a == b,
            (Label::Legacy(a), Label::Legacy(b)) => a == b,
            _ => false,
        }
    }
}

impl<S: AsRef<str>> Eq for Label<S> {}

impl<S: AsRef<str>> Hash for Label<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.form().hash(state);
        match self {
            Label::Repository(label) => label.hash(state),
            Label::Ibip(label) => label.hash(state),
            Label::Legacy(label) => label.hash(state),
        }
    }
}

/// Prints the canonical spelling, as constructed by 1.1 and 1.2.
impl<S: AsRef<str>> fmt::Display for Label<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Label::Repository(label) => label.fmt(f),
            Label::Ibip(label) => label.fmt(f),
            Label::Legacy(label) => label.fmt(f),
        }
    }
}
