//! The columns of a table, and what a row says by them.

use std::str::FromStr;

use crate::deposit::DepositRequest;
use crate::dublin_core::{DublinCore, MetadataStatement};

/// Between several values in one field.
const VALUE_SEPARATOR: &str = "||";

const COLUMN_NAMES: &str = "file, url, record, language, translation-of, next-edition-of, target, access, label, original, \
                     alias, metadata-label, created, updated, metadata-created, metadata-updated, \
                     non-transferable, and dc. with a Dublin Core element, as dc.title or dc.title@pt";

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TableColumn {
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
    MetadataCreated,
    MetadataUpdated,
    NonTransferable,
    /// Without a name, and without values.
    Nothing,
    /// Metadata: what stands before the `=` of a statement.
    Statement(String),
}

/// The heading of a table.
#[derive(Debug)]
pub(super) struct TableHeading {
    names: Vec<String>,
    columns: Vec<TableColumn>,
    /// Where the column of files is, if there is one.
    file: Option<usize>,
}

impl TableHeading {
    pub(super) fn of<'a>(headers: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let names: Vec<String> = headers.map(|name| name.trim().to_owned()).collect();
        let columns = names.iter().map(|name| parse_column(name)).collect::<Result<Vec<_>, _>>()?;
        let file = columns.iter().position(|column| *column == TableColumn::File);
        if file.is_none()
            && !columns.iter().any(|column| matches!(column, TableColumn::Url | TableColumn::Record))
        {
            return Err(format!("it has no column file, url or record. The columns are {COLUMN_NAMES}"));
        }
        for (number, column) in columns.iter().enumerate() {
            let repeatable = matches!(
                column,
                TableColumn::Statement(_)
                    | TableColumn::Label
                    | TableColumn::MetadataLabel
                    | TableColumn::Alias
                    | TableColumn::Nothing
            );
            if !repeatable && columns[..number].contains(column) {
                return Err(format!("duplicate column {}", names[number]));
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
            TableColumn::Url => !value.is_empty(),
            TableColumn::Record => parse_yes_no(value) == Ok(true),
            _ => false,
        })
    }

    /// Names and values that are not empty, in order of the names.
    pub(super) fn named_values<'a>(&'a self, values: &'a [String]) -> Vec<(&'a str, &'a str)> {
        let pairs = self.names.iter().zip(values).map(|(name, value)| (name.as_str(), value.as_str()));
        let mut pairs: Vec<_> = pairs.filter(|(_, value)| !value.is_empty()).collect();
        pairs.sort_by_key(|(name, _)| *name);
        pairs
    }

    /// What a row says.
    pub(super) fn draft(&self, values: &[String], key: String, by: &str) -> Result<DepositRequest, String> {
        let mut statements = Vec::new();
        let mut draft = DepositRequest { key: Some(key), ..DepositRequest::new(by) };
        for ((column, name), value) in self.columns.iter().zip(&self.names).zip(values) {
            if value.is_empty() {
                continue;
            }
            let at = |error: String| format!("column {name}: {error}");
            match column {
                TableColumn::File => {}
                TableColumn::Url => draft.url = Some(parse_value(value).map_err(at)?),
                // Also says that there is no file: both would contradict each other.
                TableColumn::Record => {
                    if parse_yes_no(value).map_err(at)? && !self.file(values).is_empty() {
                        return Err(format!(
                            "column {name}: a record has no file, and the column file names one"
                        ));
                    }
                }
                TableColumn::Nothing => return Err(format!("value {value:?} in an unnamed column")),
                TableColumn::Language => draft.language = Some(parse_value(value).map_err(at)?),
                TableColumn::TranslationOf => draft.translation_of = Some(value.clone()),
                TableColumn::NextEditionOf => draft.next_edition_of = Some(value.clone()),
                TableColumn::Target => draft.target = Some(value.clone()),
                TableColumn::Access => draft.access = parse_value(value).map_err(at)?,
                TableColumn::Label => draft.labels.extend(split_values(value)),
                TableColumn::Alias => draft.aliases.extend(split_values(value)),
                TableColumn::MetadataLabel => draft.metadata_labels.extend(split_values(value)),
                TableColumn::Created => draft.created = Some(value.clone()),
                TableColumn::Updated => draft.updated = Some(value.clone()),
                TableColumn::MetadataCreated => draft.metadata_created = Some(value.clone()),
                TableColumn::MetadataUpdated => draft.metadata_updated = Some(value.clone()),
                TableColumn::Original => draft.original = parse_yes_no(value).map_err(at)?,
                TableColumn::NonTransferable => draft.transferable = !parse_yes_no(value).map_err(at)?,
                TableColumn::Statement(element) => {
                    for value in split_values(value) {
                        statements.push(
                            parse_value::<MetadataStatement>(&format!("{element}={value}")).map_err(at)?,
                        );
                    }
                }
            }
        }
        draft.metadata = DublinCore::new(statements).map_err(|error| error.to_string())?;
        Ok(draft)
    }
}

fn parse_column(name: &str) -> Result<TableColumn, String> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "" => TableColumn::Nothing,
        "file" => TableColumn::File,
        "url" => TableColumn::Url,
        "record" => TableColumn::Record,
        "language" => TableColumn::Language,
        "translation-of" => TableColumn::TranslationOf,
        "next-edition-of" => TableColumn::NextEditionOf,
        "target" => TableColumn::Target,
        "access" => TableColumn::Access,
        "label" => TableColumn::Label,
        "original" => TableColumn::Original,
        "alias" => TableColumn::Alias,
        "metadata-label" => TableColumn::MetadataLabel,
        "created" => TableColumn::Created,
        "updated" => TableColumn::Updated,
        "metadata-created" => TableColumn::MetadataCreated,
        "metadata-updated" => TableColumn::MetadataUpdated,
        "non-transferable" => TableColumn::NonTransferable,
        _ => {
            let element = name.strip_prefix("dc.");
            let element = element
                .ok_or_else(|| format!("there is no column {name:?}. The columns are {COLUMN_NAMES}"))?;
            // A value that always is right, to have the element and the language checked.
            parse_value::<MetadataStatement>(&format!("{element}=x"))
                .map_err(|error| format!("column {name}: {error}"))?;
            TableColumn::Statement(element.to_owned())
        }
    })
}

fn parse_value<T: FromStr>(value: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    value.parse().map_err(|error: T::Err| error.to_string())
}

fn split_values(value: &str) -> impl Iterator<Item = String> {
    value.split(VALUE_SEPARATOR).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

fn parse_yes_no(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" | "x" | "sim" => Ok(true),
        "no" | "false" | "0" | "não" | "nao" => Ok(false),
        _ => Err("say yes or no".to_owned()),
    }
}
