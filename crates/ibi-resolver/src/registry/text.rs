//! The registry as text (`docs/formats/registry.md`), for people and for another resolver that
//! takes over.

use std::collections::HashSet;

use ibi_http::pooled_client::ServerAddress;
use ibi_id::{Instant, Label};
use ibi_protocol::untrusted_text::quote_untrusted;
use ibi_store::registry::ArchiveRow;

use super::{MAX_ARCHIVE_HOSTS, RegistryImportError, rows};
use crate::archive::RegistrationStatus;
use crate::keys;

const REGISTRY_TEXT_TITLE: &str = "ibi registry, format 1";

/// Maximum length of a value that an Archive supplies, in bytes.
const MAX_REGISTRY_VALUE_BYTES: usize = 255;

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegistryImportReport {
    /// New Archives.
    pub added: usize,
    /// Existing Archives for which the text had a later change.
    pub replaced: usize,
    /// Existing Archives that stay unchanged.
    pub kept: usize,
}

/// Writes all Archives, in their order.
pub(super) fn write(archives: &[ArchiveRow]) -> String {
    let mut text = format!("{REGISTRY_TEXT_TITLE}\n");
    for row in archives {
        text.extend(["\narchive ", &row.service, "\n"]);
        let mut line = |name: &str, value: &str| text.push_str(&format!("  {name:<10} {value}\n"));
        line("standing", &row.standing);
        if let Some(address) = &row.address {
            line("address", address);
        }
        for host in &row.hosts {
            line("host", host);
        }
        line("registered", &time(row.registered));
        line("changed", &time(row.changed));
        if let Some(email) = &row.email {
            line("email", email);
        }
        for (name, value) in [("ip", &row.ip), ("protocol", &row.protocol), ("platform", &row.platform)] {
            value.iter().for_each(|value| line(name, value));
        }
        line("key", &row.key_hash);
    }
    text
}

fn time(seconds: i64) -> String {
    Instant::new(seconds, 0).map_or_else(|| seconds.to_string(), |instant| instant.to_string())
}

/// Parses such a text. Empty lines and lines that begin with `#` are ignored.
pub(super) fn read(text: &str) -> Result<Vec<ArchiveRow>, RegistryImportError> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    match lines.next() {
        Some((_, REGISTRY_TEXT_TITLE)) => {}
        Some((line, title)) if title.starts_with("ibi registry, format ") => {
            return Err(import_error(
                line,
                "this format is not known here: use the newer program that wrote it",
            ));
        }
        _ => return Err(import_error(1, format!("the first line has to be `{REGISTRY_TEXT_TITLE}`"))),
    }
    let mut blocks: Vec<RegistryTextBlock> = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (name, blocks.last_mut()) {
            ("archive", _) => blocks.push(RegistryTextBlock::new(number, value.trim())?),
            (_, None) => return Err(import_error(number, "an Archive begins with `archive` and its IBI")),
            (name, Some(block)) => block.read(number, name, value.trim())?,
        }
    }
    let mut seen = HashSet::new();
    let rows = blocks.into_iter().map(|block| {
        let (line, row) = (block.line, block.finish()?);
        if seen.insert(row.canonical.clone()) {
            Ok(row)
        } else {
            Err(import_error(line, "duplicate Archive"))
        }
    });
    rows.collect()
}

/// An Archive that is being parsed.
struct RegistryTextBlock {
    line: usize,
    row: ArchiveRow,
    given: HashSet<String>,
}

impl RegistryTextBlock {
    fn new(line: usize, service: &str) -> Result<Self, RegistryImportError> {
        let label: Label = service.parse().map_err(|error| {
            import_error(line, format!("`{}` is not a valid IBI: {error}", quote_untrusted(service)))
        })?;
        Ok(Self { line, row: rows::new_row(&label, 0), given: HashSet::new() })
    }

    fn read(&mut self, line: usize, name: &str, value: &str) -> Result<(), RegistryImportError> {
        if !self.given.insert(name.to_owned()) && name != "host" {
            return Err(import_error(line, format!("duplicate field `{}`", quote_untrusted(name))));
        }
        let seconds = || {
            let instant = value.parse::<Instant>().map_err(|error| import_error(line, error.to_string()));
            instant.map(Instant::seconds)
        };
        let address = || match ServerAddress::parse(value) {
            Ok(_) => Ok(value.to_owned()),
            Err(rule) => Err(import_error(
                line,
                format!("`{}` is not a valid address: {rule}", quote_untrusted(value)),
            )),
        };
        match name {
            "standing" => match RegistrationStatus::read(value) {
                Some(standing) => self.row.standing = standing.as_str().to_owned(),
                None => {
                    let rule = "a standing is new, unconfirmed, online, offline or retired";
                    return Err(import_error(line, rule));
                }
            },
            "address" => self.row.address = Some(address()?),
            "host" if self.row.hosts.len() < MAX_ARCHIVE_HOSTS => self.row.hosts.push(address()?),
            "host" => {
                return Err(import_error(
                    line,
                    format!("an Archive has at most {MAX_ARCHIVE_HOSTS} further hosts"),
                ));
            }
            "registered" => self.row.registered = seconds()?,
            "changed" => self.row.changed = seconds()?,
            "email" if is_line(value) => {
                self.row.email = Some(value.to_owned());
            }
            "ip" => match value.parse::<std::net::IpAddr>() {
                Ok(ip) => self.row.ip = Some(ip.to_string()),
                Err(_) => {
                    return Err(import_error(
                        line,
                        format!("`{}` is not a valid IP address", quote_untrusted(value)),
                    ));
                }
            },
            "protocol" | "platform" if !is_line(value) => {
                return Err(import_error(
                    line,
                    format!("`{name}` has one to {MAX_REGISTRY_VALUE_BYTES} bytes"),
                ));
            }
            "protocol" => self.row.protocol = Some(value.to_owned()),
            "platform" => self.row.platform = Some(value.to_owned()),
            "email" => return Err(import_error(line, "an e-mail address has one to 255 bytes")),
            "key" if keys::is_hash(value) => self.row.key_hash = value.to_owned(),
            // Not quoted: somebody may have written the key itself.
            "key" => {
                return Err(import_error(line, "a key is kept as its Argon2id digest, `$argon2id$v=19$…`"));
            }
            other => {
                return Err(import_error(line, format!("unknown field `{}`", quote_untrusted(other))));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<ArchiveRow, RegistryImportError> {
        for name in ["standing", "registered", "changed", "key"] {
            if !self.given.contains(name) {
                return Err(import_error(self.line, format!("this Archive has no `{name}`")));
            }
        }
        let comes = matches!(
            RegistrationStatus::read(&self.row.standing),
            Some(RegistrationStatus::Unconfirmed | RegistrationStatus::OnLine)
        );
        if comes && self.row.address.is_none() {
            return Err(import_error(self.line, "an Archive that is online has an `address`"));
        }
        Ok(self.row)
    }
}

fn is_line(value: &str) -> bool {
    (1..=MAX_REGISTRY_VALUE_BYTES).contains(&value.len()) && !value.contains(char::is_control)
}

fn import_error(line: usize, rule: impl Into<String>) -> RegistryImportError {
    RegistryImportError { line, rule: rule.into() }
}
