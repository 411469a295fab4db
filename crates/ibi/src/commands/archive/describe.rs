//! What the options of a command say of an item.

use std::fs;
use std::path::Path;

use ibi_archive::Changes;
use ibi_archive::deposit::Draft;
use ibi_archive::dublin_core::{DublinCore, Element, Statement};

use crate::cli::archive::Description;
use crate::exit::Failure;

/// Metadata from `--dc`: a whole record from files, and statements.
pub(super) struct Given {
    pub(super) record: Option<DublinCore>,
    pub(super) statements: Vec<Statement>,
}

pub(super) fn metadata(dc: &[String]) -> Result<Given, Failure> {
    let mut given = Given { record: None, statements: Vec::new() };
    for text in dc {
        if is_statement(text) {
            let statement =
                text.parse::<Statement>().map_err(|error| Failure::Usage(format!("--dc {text}: {error}")))?;
            given.statements.push(statement);
            continue;
        }
        let path = Path::new(text);
        if !path.exists() {
            let elements = Element::ALL.map(Element::name).join(", ");
            let what = format!(
                "--dc {text}: neither element=value nor a file that is there. The elements are {elements}"
            );
            return Err(Failure::Usage(what));
        }
        let wrong = |what: String| Failure::Usage(format!("--dc {text}: {what}"));
        let bytes = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let record = DublinCore::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
        let all =
            given.record.iter().flat_map(|record| record.statements()).chain(record.statements()).cloned();
        given.record = Some(DublinCore::new(all.collect()).map_err(|error| wrong(error.to_string()))?);
    }
    Ok(given)
}

/// Whether it is meant as `element=value`: what stands before the first `=` has only what elements and languages have. A file
/// is never named so, unless it is given with its folder.
fn is_statement(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '@' | '-' | '_' | '.' | ':'))
        && !Path::new(text).exists()
}

impl Description {
    pub(super) fn draft(self, labels: Vec<String>, original: bool, by: String) -> Result<Draft, Failure> {
        let Given { record, statements } = metadata(&self.dc)?;
        let all = record.iter().flat_map(|record| record.statements()).cloned().chain(statements).collect();
        Ok(Draft {
            metadata: DublinCore::new(all).map_err(|error| Failure::Usage(error.to_string()))?,
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
            ..Draft::new(&by)
        })
    }

    pub(super) fn changes(self) -> Result<Changes, Failure> {
        let Given { record, statements } = metadata(&self.dc)?;
        // A file takes the place of all; what is said besides is added to it.
        let (record, statements) = match record {
            Some(record) => {
                let all = record.statements().iter().cloned().chain(statements).collect();
                (Some(DublinCore::new(all).map_err(|error| Failure::Usage(error.to_string()))?), Vec::new())
            }
            None => (None, statements),
        };
        Ok(Changes {
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
