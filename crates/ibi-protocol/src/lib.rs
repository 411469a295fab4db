//! What resolver and Archives say to each other: lists of pairs, verbs and relations, messages.
//!
//! A message from the resolver to an Archive, or back, is one HTTP GET; its query is a [`Request`]. The answer is a
//! list of [`Pairs`]. What is asked of an item is said by [`Verbs`], which spell a [`Relation`]; the pairs of an
//! answer have the relation in their names:
//!
//! ```
//! use ibi_protocol::{Limits, Pairs, Verbs, answer};
//! let verbs = Verbs::parse("GetLastEdition GetMetadata(oai_dc)")?;
//! assert_eq!(verbs.relation.to_string(), ".lastedition.metadata(oai_dc)");
//! let found = Pairs::read(b"ibi {rep a.br/b/2009/02.16.17.46}\nurl http://b.a.br/x", &Limits::default())?;
//! assert_eq!(answer::filter(found, &verbs).to_string(), "ibi {rep a.br/b/2009/02.16.17.46}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client asks for a [`PersistentUrl`]; what the answers to it lead to is decided by [`analysis`].
//!
//! Writing is strict, reading liberal and bounded: nothing here panics, recurses or grows without a bound on what
//! strangers send. No I/O, no clock. Clauses like 3.4 or D25 in these pages are those of the specification.

pub mod analysis;
pub mod answer;
mod file_path;
mod forms;
mod key;
pub mod language;
mod link;
pub mod message;
pub mod pairs;
pub mod persistent;
pub mod relation;
pub mod shown;
pub mod verb;

pub use answer::{ContentType, State};
pub use file_path::{FilePath, FilePathError};
pub use forms::{Forms, FormsError};
pub use key::{Key, KeyError, is_key};
pub use language::{Language, LanguageError};
pub use link::{LabelLink, LinkError};
pub use message::{Acknowledgment, MessageError, Protocol, Registration, Request, SentUrl, UrlRequest};
pub use pairs::{Limits, Pairs, PairsError, Value, words};
pub use persistent::{PersistentError, PersistentUrl, Place};
pub use relation::{Part, Relation, RelationError};
pub use verb::{VerbError, Verbs};
