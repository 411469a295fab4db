//! Conformance suites, one for each storage trait. Back ends run these in their tests.

#![expect(clippy::unwrap_used, reason = "suites of tests: what does not hold must stop them")]

mod content;
mod marks;
mod records;

pub use content::content;
pub use marks::{first_mark, marks, next_mark};
pub use records::records;
