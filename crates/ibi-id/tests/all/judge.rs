//! Compares the crate with the slow reference reader in [`crate::norm`]. The fuzz targets use it
//! too.

use std::net::IpAddr;

use ibi_id::Label;

use crate::norm::{self, Meaning, ONE_SECOND};

/// The crate's reading of a text, in the reference reader's terms.
pub(crate) fn meaning(text: &str) -> Option<Meaning> {
    let label = Label::parse(text).ok()?;
    let from = match &label {
        Label::Repository(label) => label.host().to_string(),
        Label::Ibip(label) => match label.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => norm::ipv6_text(ip),
        },
        Label::Legacy(label) => label.prefix().to_owned(),
    };
    let at = label.instant();
    Some(Meaning {
        form: label.form().name(),
        from,
        port: label.port().unwrap_or(0).into(),
        date: i128::from(at.seconds()) * ONE_SECOND + i128::from(at.picos()),
    })
}

/// Panics if the two readers differ, if an error points beyond the text, or if an accepted label
/// does not round-trip.
pub(crate) fn judge(text: &str) {
    assert_eq!(meaning(text), norm::read(text));
    match Label::parse(text) {
        Ok(label) => {
            assert_eq!(label.spelling(), text);
            assert_eq!(format!("{}/{}", label.prefix(), label.suffix()), text);
            let canonical = label.to_string();
            let again = Label::parse(&canonical).expect("what is printed can be read");
            assert_eq!(label, again);
            assert_eq!(again.to_string(), canonical);
        }
        Err(error) => assert!(error.position() <= text.len(), "position beyond the text"),
    }
}
