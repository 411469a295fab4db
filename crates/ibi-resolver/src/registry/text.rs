//! The registry as text (`docs/formats/registry.md`): for people to read, and for another resolver to go on from.

use std::collections::HashSet;

use ibi_http::asking::Address;
use ibi_id::{Instant, Label};
use ibi_protocol::shown::shown;
use ibi_store::registry::ArchiveRow;

use super::{ImportError, MOST_HOSTS, rows};
use crate::archive::Standing;
use crate::keys;

const TITLE: &str = "ibi registry, format 1";

/// The most bytes of what an Archive says of itself.
const MAX_LINE_BYTES: usize = 255;

/// What was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Archives that were not here.
    pub added: usize,
    /// Archives that were here, and that the text knows later news of.
    pub replaced: usize,
    /// Archives that stay as they are here.
    pub kept: usize,
}

/// Writes all Archives, in their order.
pub(super) fn write(archives: &[ArchiveRow]) -> String {
    let mut text = format!("{TITLE}\n");
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

/// Reads such a text. Lines that are empty or begin with `#` are for people.
pub(super) fn read(text: &str) -> Result<Vec<ArchiveRow>, ImportError> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    match lines.next() {
        Some((_, TITLE)) => {}
        Some((line, title)) if title.starts_with("ibi registry, format ") => {
            return Err(wrong(line, "this format is not known here: use the newer program that wrote it"));
        }
        _ => return Err(wrong(1, format!("the first line has to be `{TITLE}`"))),
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (name, blocks.last_mut()) {
            ("archive", _) => blocks.push(Block::new(number, value.trim())?),
            (_, None) => return Err(wrong(number, "an Archive begins with `archive` and its IBI")),
            (name, Some(block)) => block.read(number, name, value.trim())?,
        }
    }
    let mut seen = HashSet::new();
    let rows = blocks.into_iter().map(|block| {
        let (line, row) = (block.line, block.finish()?);
        if seen.insert(row.canonical.clone()) {
            Ok(row)
        } else {
            Err(wrong(line, "this Archive was there before"))
        }
    });
    rows.collect()
}

/// An Archive that is being read.
struct Block {
    line: usize,
    row: ArchiveRow,
    given: HashSet<String>,
}

impl Block {
    fn new(line: usize, service: &str) -> Result<Self, ImportError> {
        let label: Label = service
            .parse()
            .map_err(|error| wrong(line, format!("`{}` is no IBI: {error}", shown(service))))?;
        Ok(Self { line, row: rows::new(&label, 0), given: HashSet::new() })
    }

    fn read(&mut self, line: usize, name: &str, value: &str) -> Result<(), ImportError> {
        if !self.given.insert(name.to_owned()) && name != "host" {
            return Err(wrong(line, format!("`{}` is there twice", shown(name))));
        }
        let seconds = || {
            let instant = value.parse::<Instant>().map_err(|error| wrong(line, error.to_string()));
            instant.map(Instant::seconds)
        };
        let address = || match Address::parse(value) {
            Ok(_) => Ok(value.to_owned()),
            Err(rule) => Err(wrong(line, format!("`{}` is no address: {rule}", shown(value)))),
        };
        match name {
            "standing" => match Standing::read(value) {
                Some(standing) => self.row.standing = standing.as_str().to_owned(),
                None => {
                    let rule = "a standing is new, unconfirmed, online, offline or retired";
                    return Err(wrong(line, rule));
                }
            },
            "address" => self.row.address = Some(address()?),
            "host" if self.row.hosts.len() < MOST_HOSTS => self.row.hosts.push(address()?),
            "host" => return Err(wrong(line, format!("an Archive has at most {MOST_HOSTS} further hosts"))),
            "registered" => self.row.registered = seconds()?,
            "changed" => self.row.changed = seconds()?,
            "email" if is_line(value) => {
                self.row.email = Some(value.to_owned());
            }
            "ip" => match value.parse::<std::net::IpAddr>() {
                Ok(ip) => self.row.ip = Some(ip.to_string()),
                Err(_) => return Err(wrong(line, format!("`{}` is no IP address", shown(value)))),
            },
            "protocol" | "platform" if !is_line(value) => {
                return Err(wrong(line, format!("`{name}` has one to {MAX_LINE_BYTES} bytes")));
            }
            "protocol" => self.row.protocol = Some(value.to_owned()),
            "platform" => self.row.platform = Some(value.to_owned()),
            "email" => return Err(wrong(line, "an e-mail address has one to 255 bytes")),
            "key" if keys::is_hash(value) => self.row.key_hash = value.to_owned(),
            // Not repeated: somebody may have written the key itself.
            "key" => return Err(wrong(line, "a key is kept as its Argon2id digest, `$argon2id$v=19$…`")),
            other => return Err(wrong(line, format!("`{}` is nothing that an Archive has", shown(other)))),
        }
        Ok(())
    }

    fn finish(self) -> Result<ArchiveRow, ImportError> {
        for name in ["standing", "registered", "changed", "key"] {
            if !self.given.contains(name) {
                return Err(wrong(self.line, format!("this Archive has no `{name}`")));
            }
        }
        let comes =
            matches!(Standing::read(&self.row.standing), Some(Standing::Unconfirmed | Standing::OnLine));
        if comes && self.row.address.is_none() {
            return Err(wrong(self.line, "an Archive that is on line has an `address`"));
        }
        Ok(self.row)
    }
}

fn is_line(value: &str) -> bool {
    (1..=MAX_LINE_BYTES).contains(&value.len()) && !value.contains(char::is_control)
}

fn wrong(line: usize, rule: impl Into<String>) -> ImportError {
    ImportError { line, rule: rule.into() }
}
