//! Converts description options into requests and changes.

use std::fs;
use std::path::Path;

use ibi_archive::ItemChanges;
use ibi_archive::deposit::DepositRequest;
use ibi_archive::dublin_core::{DublinCore, Element, MetadataStatement};

use crate::cli::archive::DescriptionArgs;
use crate::exit::CommandError;

/// Metadata from `--dc`: a record merged from files, and single statements.
pub(super) struct ParsedMetadataArgs {
    pub(super) record: Option<DublinCore>,
    pub(super) statements: Vec<MetadataStatement>,
}

pub(super) fn parse_metadata(dc: &[String]) -> Result<ParsedMetadataArgs, CommandError> {
    let mut given = ParsedMetadataArgs { record: None, statements: Vec::new() };
    for text in dc {
        if is_statement(text) {
            let statement = text
                .parse::<MetadataStatement>()
                .map_err(|error| CommandError::Usage(format!("--dc {text}: {error}")))?;
            given.statements.push(statement);
            continue;
        }
        let path = Path::new(text);
        if !path.exists() {
            let elements = Element::ALL.map(Element::name).join(", ");
            let what = format!(
                "--dc {text}: neither element=value nor an existing file. The elements are {elements}"
            );
            return Err(CommandError::Usage(what));
        }
        let wrong = |what: String| CommandError::Usage(format!("--dc {text}: {what}"));
        let bytes = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let record = DublinCore::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
        let all =
            given.record.iter().flat_map(|record| record.statements()).chain(record.statements()).cloned();
        given.record = Some(DublinCore::new(all.collect()).map_err(|error| wrong(error.to_string()))?);
    }
    Ok(given)
}

/// Whether an argument is `element=value`: the text before the first `=` has only characters of
/// elements and languages, and no such file exists. Give such a file with its folder.
fn is_statement(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '@' | '-' | '_' | '.' | ':'))
        && !Path::new(text).exists()
}

impl DescriptionArgs {
    pub(super) fn draft(
        self,
        labels: Vec<String>,
        original: bool,
        by: String,
    ) -> Result<DepositRequest, CommandError> {
        let ParsedMetadataArgs { record, statements } = parse_metadata(&self.dc)?;
        let all = record.iter().flat_map(|record| record.statements()).cloned().chain(statements).collect();
        Ok(DepositRequest {
            metadata: DublinCore::new(all).map_err(|error| CommandError::Usage(error.to_string()))?,
            language: self.language.and_then(|language| language.0),
            translation_of: self.translation_of.and_then(|link| link.0),
            next_edition_of: self.next_edition_of.and_then(|link| link.0),
            target: self.target,
            url: self.url.and_then(|url| url.0),
            access: self.access.unwrap_or_default(),
            labels,
            original,
            aliases: self.alias,
            transferable: !self.non_transferable,
            ..DepositRequest::new(&by)
        })
    }

    pub(super) fn changes(self) -> Result<ItemChanges, CommandError> {
        let ParsedMetadataArgs { record, statements } = parse_metadata(&self.dc)?;
        // A file replaces all metadata; statements are added to it.
        let (record, statements) = match record {
            Some(record) => {
                let all = record.statements().iter().cloned().chain(statements).collect();
                (
                    Some(DublinCore::new(all).map_err(|error| CommandError::Usage(error.to_string()))?),
                    Vec::new(),
                )
            }
            None => (None, statements),
        };
        Ok(ItemChanges {
            record,
            statements,
            language: self.language.map(|language| language.0),
            translation_of: self.translation_of.map(|link| link.0),
            next_edition_of: self.next_edition_of.map(|link| link.0),
            target: self.target,
            url: self.url.map(|url| url.0),
            access: self.access,
            aliases: self.alias,
            non_transferable: self.non_transferable,
        })
    }
}
