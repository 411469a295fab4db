//! Dates of creation and update from another Archive, recorded as given (clause 2.2).

use ibi_id::Instant;

use crate::ArchiveError;
use crate::deposit::DepositRequest;

/// The dates of a draft; empty where it has none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DepositDates {
    pub(crate) created: String,
    pub(crate) updated: String,
    /// When the metadata were created, if recorded separately.
    pub(crate) metadata_created: Option<String>,
    /// When the metadata were last updated, if recorded separately.
    pub(crate) metadata_updated: Option<String>,
}

/// The dates of a draft, checked, in whole seconds.
pub(crate) fn parse_deposit_dates(
    draft: &DepositRequest,
    now: Instant,
) -> Result<DepositDates, ArchiveError> {
    let parse = |name: &str, date: &Option<String>| {
        date.as_deref().map(|date| parse_past_date(name, date, now)).transpose()
    };
    let created = parse("created", &draft.created)?;
    let updated = parse("updated", &draft.updated)?;
    let metadata_created = parse("metadata-created", &draft.metadata_created)?;
    let metadata_updated = parse("metadata-updated", &draft.metadata_updated)?;
    let any = [created, updated, metadata_created, metadata_updated].iter().any(Option::is_some);
    if any && draft.labels.is_empty() {
        return Err(ArchiveError::Value(
            "`created` and `updated` require an existing label: a new label starts a new item now".to_owned(),
        ));
    }
    let metadata_end = metadata_updated.or(updated);
    for (what, begin, end) in
        [("it was", created, updated), ("metadata were", metadata_created, metadata_end)]
    {
        if let (Some(begin), Some(end)) = (begin, end)
            && end < begin
        {
            return Err(ArchiveError::Value(format!("{what} updated {end}, before the creation, {begin}")));
        }
    }
    // Without a date of creation, no later one than that of the update is known.
    let created = created.or(updated);
    let text = |date: Option<Instant>| date.map(|date| date.to_string()).unwrap_or_default();
    let optional = |date: Option<Instant>| date.map(|date| date.to_string());
    Ok(DepositDates {
        created: text(created),
        updated: text(updated),
        metadata_created: optional(metadata_created),
        metadata_updated: optional(metadata_updated),
    })
}

fn parse_past_date(name: &str, text: &str, now: Instant) -> Result<Instant, ArchiveError> {
    let wrong = |what: &str| ArchiveError::Value(format!("{name}: `{}`: {what}", text.escape_debug()));
    // Unix seconds, which instants are also read from, would pass for anything that is a number.
    if !text.contains(['T', 't']) {
        return Err(wrong("a date is written as in 2014-04-04T17:39:54Z (RFC 3339)"));
    }
    let date: Instant = text.parse().map_err(|error: ibi_id::ParseError| wrong(error.rule().message()))?;
    if date > now {
        return Err(wrong("it lies in the future"));
    }
    Ok(Instant::new(date.seconds(), 0).unwrap_or(date))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_2_2_dates_from_elsewhere_are_checked() {
        let now: Instant = "2026-01-01T00:00:00Z".parse().unwrap();
        let labelled =
            DepositRequest { labels: vec!["a.br/b/1998/08.02.08.56".to_owned()], ..DepositRequest::new("x") };
        let told = |created: Option<&str>, updated: Option<&str>| {
            let (created, updated) = (created.map(str::to_owned), updated.map(str::to_owned));
            parse_deposit_dates(&DepositRequest { created, updated, ..labelled.clone() }, now).ok()
        };
        let both = |created: &str, updated: &str| {
            let (created, updated) = (created.to_owned(), updated.to_owned());
            Some(DepositDates { created, updated, ..DepositDates::default() })
        };
        assert_eq!(told(None, None), both("", ""));
        assert_eq!(
            told(Some("1998-08-02T08:56:00Z"), Some("2014-04-04T17:39:54.5-03:00")),
            both("1998-08-02T08:56:00Z", "2014-04-04T20:39:54Z")
        );
        assert_eq!(told(Some("1998-08-02T08:56:00Z"), None), both("1998-08-02T08:56:00Z", ""));
        assert_eq!(
            told(None, Some("1998-08-02T08:56:00Z")).map(|dates| dates.created).as_deref(),
            Some("1998-08-02T08:56:00Z")
        );
        for wrong in ["1998-08-02", "902048160", "", "2026-01-01T00:00:01Z", "1998-02-30T08:56:00Z"] {
            assert_eq!(told(Some(wrong), None), None, "{wrong}");
        }
        assert_eq!(told(Some("2001-01-01T00:00:00Z"), Some("2000-01-01T00:00:00Z")), None);
        let metadata =
            DepositRequest { metadata_updated: Some("2009-09-09T22:01:00Z".to_owned()), ..labelled.clone() };
        let dates = parse_deposit_dates(&metadata, now).unwrap();
        assert_eq!(dates.metadata_updated.as_deref(), Some("2009-09-09T22:01:00Z"));
        let earlier = Some("2009-09-09T22:00:59Z".to_owned());
        let dates =
            parse_deposit_dates(&DepositRequest { metadata_created: earlier, ..metadata.clone() }, now);
        assert_eq!(dates.unwrap().metadata_created.as_deref(), Some("2009-09-09T22:00:59Z"));
        let later = Some("2009-09-09T22:01:01Z".to_owned());
        assert!(parse_deposit_dates(&DepositRequest { metadata_created: later, ..metadata }, now).is_err());
        let unlabelled =
            DepositRequest { created: Some("1998-08-02T08:56:00Z".to_owned()), ..DepositRequest::new("x") };
        assert!(parse_deposit_dates(&unlabelled, now).is_err());
    }
}
