//! What a label means, by the crate and by the slow second reader of its tests: they must agree.

#[path = "../../crates/ibi-id/tests/all/norm.rs"]
#[allow(dead_code)]
mod norm;

use std::net::IpAddr;

use ibi_id::Label;

/// Panics if the crate and the second reader differ, or if an accepted label does not survive being printed.
pub fn judge(text: &str) {
    let label = match Label::parse(text) {
        Ok(label) => label,
        Err(error) => {
            assert!(error.position() <= text.len(), "position beyond the text");
            assert_eq!(norm::read(text), None, "refused by one reader only: {error}");
            return;
        }
    };
    let from = match &label {
        Label::Repository(label) => label.host().to_string(),
        Label::Ibip(label) => match label.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => norm::ipv6_text(ip),
        },
        Label::Legacy(label) => label.prefix().to_owned(),
    };
    let at = label.instant();
    let meaning = norm::Meaning {
        form: label.form().name(),
        from,
        port: label.port().unwrap_or(0).into(),
        date: i128::from(at.seconds()) * norm::ONE_SECOND + i128::from(at.picos()),
    };
    assert_eq!(norm::read(text), Some(meaning));

    let canonical = label.to_string();
    let again = Label::parse(&canonical).expect("what is printed can be read");
    assert_eq!(label, again);
    assert_eq!(again.to_string(), canonical);
}
