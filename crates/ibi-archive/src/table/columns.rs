//! The columns of a table, and what a row says by them.

use std::str::FromStr;

use crate::deposit::Draft;
use crate::dublin_core::{DublinCore, Statement};

/// Between several values in one field.
const SEVERAL: &str = "||";

const NAMES: &str = "file, url, record, language, translation-of, next-edition-of, target, access, label, original, \
                     alias, metadata-label, created, updated, metadata-updated, \
                     non-transferable, and dc. with a Dublin Core element, as dc.title or dc.title@pt";

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    File,
    Url,
    Record,
    Language,
    TranslationOf,
    NextEditionOf,
    Target,
    Access,
    Label,
    Original,
    Alias,
    MetadataLabel,
    Created,
    Updated,
    MetadataUpdated,
    NonTransferable,
    /// Without a name, and without values.
    Nothing,
    /// Metadata: what stands before the `=` of a statement.
    Statement(String),
}

/// The heading of a table.
#[derive(Debug)]
pub(super) struct Columns {
    names: Vec<String>,
    columns: Vec<Column>,
    /// Where the column of files is, if there is one.
    file: Option<usize>,
}

impl Columns {
    pub(super) fn of<'a>(headers: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let names: Vec<String> = headers.map(|name| name.trim().to_owned()).collect();
        let columns = names.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
        let file = columns.iter().position(|column| *column == Column::File);
        if file.is_none() && !columns.iter().any(|column| matches!(column, Column::Url | Column::Record)) {
            return Err(format!("it has no column file, url or record. The columns are {NAMES}"));
        }
        for (number, column) in columns.iter().enumerate() {
            let repeatable = matches!(
                column,
                Column::Statement(_)
                    | Column::Label
                    | Column::MetadataLabel
                    | Column::Alias
                    | Column::Nothing
            );
            if !repeatable && columns[..number].contains(column) {
                return Err(format!("the column {} is there twice", names[number]));
            }
        }
        Ok(Self { names, columns, file })
    }

    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn file<'a>(&self, values: &'a [String]) -> &'a str {
        self.file.and_then(|file| values.get(file)).map_or("", String::as_str)
    }

    /// Whether a row says that its item has no files: it leads to a URL, or is a record (clause
    /// 2.2).
    pub(super) fn has_no_files(&self, values: &[String]) -> bool {
        self.columns.iter().zip(values).any(|(column, value)| match column {
            Column::Url => !value.is_empty(),
            Column::Record => yes(value) == Ok(true),
            _ => false,
        })
    }

    /// Names and values that are not empty, in order of the names.
    pub(super) fn named<'a>(&'a self, values: &'a [String]) -> Vec<(&'a str, &'a str)> {
        let pairs = self.names.iter().zip(values).map(|(name, value)| (name.as_str(), value.as_str()));
        let mut pairs: Vec<_> = pairs.filter(|(_, value)| !value.is_empty()).collect();
        pairs.sort_by_key(|(name, _)| *name);
        pairs
    }

    /// What a row says.
    pub(super) fn draft(&self, values: &[String], key: String, by: &str) -> Result<Draft, String> {
        let mut statements = Vec::new();
        let mut draft = Draft { key: Some(key), ..Draft::new(by) };
        for ((column, name), value) in self.columns.iter().zip(&self.names).zip(values) {
            if value.is_empty() {
                continue;
            }
            let at = |error: String| format!("column {name}: {error}");
            match column {
                Column::File => {}
                Column::Url => draft.url = Some(parsed(value).map_err(at)?),
                // Also says that there is no file: both would contradict each other.
                Column::Record => {
                    if yes(value).map_err(at)? && !self.file(values).is_empty() {
                        return Err(format!(
                            "column {name}: a record has no file, and the column file names one"
                        ));
                    }
                }
                Column::Nothing => return Err(format!("{value:?} stands in a column without a name")),
                Column::Language => draft.language = Some(parsed(value).map_err(at)?),
                Column::TranslationOf => draft.translation_of = Some(value.clone()),
                Column::NextEditionOf => draft.next_edition_of = Some(value.clone()),
                Column::Target => draft.target = Some(value.clone()),
                Column::Access => draft.access = parsed(value).map_err(at)?,
                Column::Label => draft.labels.extend(several(value)),
                Column::Alias => draft.aliases.extend(several(value)),
                Column::MetadataLabel => draft.metadata_labels.extend(several(value)),
                Column::Created => draft.created = Some(value.clone()),
                Column::Updated => draft.updated = Some(value.clone()),
                Column::MetadataUpdated => draft.metadata_updated = Some(value.clone()),
                Column::Original => draft.original = yes(value).map_err(at)?,
                Column::NonTransferable => draft.transferable = !yes(value).map_err(at)?,
                Column::Statement(element) => {
                    for value in several(value) {
                        statements.push(parsed::<Statement>(&format!("{element}={value}")).map_err(at)?);
                    }
                }
            }
        }
        draft.metadata = DublinCore::new(statements).map_err(|error| error.to_string())?;
        Ok(draft)
    }
}

fn column(name: &str) -> Result<Column, String> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "" => Column::Nothing,
        "file" => Column::File,
        "url" => Column::Url,
        "record" => Column::Record,
        "language" => Column::Language,
        "translation-of" => Column::TranslationOf,
        "next-edition-of" => Column::NextEditionOf,
        "target" => Column::Target,
        "access" => Column::Access,
        "label" => Column::Label,
        "original" => Column::Original,
        "alias" => Column::Alias,
        "metadata-label" => Column::MetadataLabel,
        "created" => Column::Created,
        "updated" => Column::Updated,
        "metadata-updated" => Column::MetadataUpdated,
        "non-transferable" => Column::NonTransferable,
        _ => {
            let element = name.strip_prefix("dc.");
            let element =
                element.ok_or_else(|| format!("there is no column {name:?}. The columns are {NAMES}"))?;
            // A value that always is right, to have the element and the language checked.
            parsed::<Statement>(&format!("{element}=x"))
                .map_err(|error| format!("column {name}: {error}"))?;
            Column::Statement(element.to_owned())
        }
    })
}

fn parsed<T: FromStr>(value: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn several(value: &str) -> impl Iterator<Item = String> {
    value.split(SEVERAL).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

fn yes(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" | "x" | "sim" => Ok(true),
        "no" | "false" | "0" | "não" | "nao" => Ok(false),
        _ => Err("say yes or no".to_owned()),
    }
}
