//! The protocol between a resolver and its Archives: lists of pairs, verbs, relations, messages.
//!
//! A message in either direction is one HTTP GET whose query is a [`WireRequest`]. The response
//! body is a list of [`Pairs`]. [`Verbs`] state what is requested of an item and spell a
//! [`Relation`]; pair names in the response carry that relation:
//!
//! ```
//! use ibi_protocol::{PairsLimits, Pairs, Verbs, answer};
//! let verbs = Verbs::parse("GetLastEdition GetMetadata(oai_dc)")?;
//! assert_eq!(verbs.relation.to_string(), ".lastedition.metadata(oai_dc)");
//! let found = Pairs::read(b"ibi {rep a.br/b/2009/02.16.17.46}\nurl http://b.a.br/x", &PairsLimits::default())?;
//! assert_eq!(answer::filter(found, &verbs).to_string(), "ibi {rep a.br/b/2009/02.16.17.46}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client requests a [`PersistentUrl`]; [`analysis`] decides where the Archives' answers lead.
//!
//! Writing is strict, reading is liberal and bounded: no untrusted input makes this crate panic,
//! recurse or allocate without a limit. No I/O, no clock. Clause numbers such as 3.4 or D25 refer
//! to the specification.

pub mod analysis;
pub mod answer;
mod file_path;
mod forms;
mod key;
pub mod language;
mod link;
pub mod location;
pub mod message;
pub mod offers;
pub mod pairs;
pub mod persistent;
pub mod relation;
pub mod untrusted_text;
pub mod verb;

pub use answer::{ContentType, State};
pub use file_path::{FilePath, FilePathError};
pub use forms::{LabelForms, LabelFormsError};
pub use key::{RegistrationKey, RegistrationKeyError, is_key};
pub use language::{Language, LanguageError};
pub use link::{LabelLink, LinkError};
pub use message::{
    Acknowledgment, MessageError, SentUrl, UrlRequest, WireProtocol, WireRegistration, WireRequest,
};
pub use pairs::{PairValue, Pairs, PairsError, PairsLimits, words};
pub use persistent::{PersistentUrl, PersistentUrlError, UrlPart};
pub use relation::{Relation, RelationError, RelationPart};
pub use verb::{VerbError, Verbs};
