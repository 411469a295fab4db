//! What a resolver asks (clauses 3.3 to 3.5), and the parts of which answers are made (3.4).

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::net::TcpStream;

use crate::identity::HostileIdentity;

/// The longest head that is read.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// A request of the resolver.
pub struct ArchiveQuestion<'a> {
    pub me: &'a HostileIdentity,
    /// Path and query.
    pub target: String,
    pub subject: String,
    pub label: String,
    verbs: Vec<String>,
    file: String,
    /// How many questions came before this one.
    pub number: u64,
}

impl<'a> ArchiveQuestion<'a> {
    /// Reads the head of a request; nothing at the end of the connection.
    pub fn read(me: &'a HostileIdentity, stream: &mut TcpStream) -> io::Result<Option<Self>> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read(&mut byte)? == 0 {
                return Ok(None);
            }
            head.push(byte[0]);
            if head.len() > MAX_HEAD_BYTES {
                return Err(io::Error::other("a head without end"));
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let target = head.split(' ').nth(1).unwrap_or_default();
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(found, _)| *found == name).map_or_else(String::new, |(_, value)| decode(value))
        };
        Ok(Some(Self {
            me,
            target: target.to_owned(),
            subject: value("servicesubject"),
            label: value("parsedibiurl.ibi"),
            verbs: value("parsedibiurl.verblist").split_whitespace().map(str::to_owned).collect(),
            file: value("parsedibiurl.filepath"),
            number: 0,
        }))
    }

    /// The relations that the verbs may mean: in several languages where none is named.
    pub fn relations(&self) -> Vec<String> {
        let mut relations = vec![String::new()];
        for verb in &self.verbs {
            let parts: Vec<String> = match verb.as_str() {
                "GetLastEdition" => vec![".lastedition".to_owned()],
                "GetTranslation" => {
                    ["(pt)", "(pt-BR)", "(en)", ""].map(|language| format!(".translation{language}")).into()
                }
                _ => match verb.split_once('(') {
                    Some(("GetTranslation", language)) => vec![format!(".translation({language}")],
                    Some(("GetMetadata", format)) => vec![format!(".metadata({format}")],
                    _ if verb == "GetMetadata" => vec![".metadata".to_owned()],
                    _ => vec![String::new()],
                },
            };
            relations = relations
                .iter()
                .flat_map(|before| parts.iter().map(move |part| format!("{before}{part}")))
                .collect();
        }
        relations
    }

    /// Where the item is said to be, on the Archive's own host.
    pub fn own_url(&self) -> String {
        let file = if self.file.is_empty() { "/lie" } else { &self.file };
        format!("http://{}/hostile/{}{file}", self.me.address, self.label)
    }

    /// What every answer begins with.
    pub fn opening(&self) -> String {
        format!(
            "archiveaddress {}\r\nibi.archiveservice {{{}}}\r\nibi.platformsoftware {{}}\r\n",
            self.me.address,
            forms(&self.me.service)
        )
    }

    /// The opening and the item that was asked for.
    pub fn opening_of_item(&self) -> String {
        format!("{}ibi {{{}}}\r\n", self.opening(), forms(&self.label))
    }

    /// An answer that has the item, and whatever is asked of it, in this state and at this URL.
    pub fn claim(&self, state: &str, url: &str) -> String {
        let mut answer = self.opening_of_item();
        for relation in self.relations() {
            let kind = if relation.contains(".metadata") { "Metadata" } else { "Data" };
            if !relation.is_empty() {
                let _ = write!(answer, "ibi{relation} {{{}}}\r\n", forms(&self.label));
            }
            let _ = write!(
                answer,
                "contenttype{relation} {kind}\r\nstate{relation} {state}\r\n\
                 timestamp{relation} 2020-01-01T00:00:00Z\r\nurl{relation} {url}\r\n"
            );
        }
        answer + "urlkey 1234567890-1234567890\r\n"
    }

    /// A false Original at its own host: well formed, and so it counts.
    pub fn false_original(&self) -> String {
        self.claim("Original", &self.own_url())
    }
}

/// The name of a label's form, and the label.
pub fn forms(label: &str) -> String {
    let form = if label.matches('/').count() == 1 { "ibip" } else { "rep" };
    format!("{form} {label}")
}

/// Decodes a value of a query.
fn decode(value: &str) -> String {
    let mut decoded = Vec::new();
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        let rest: Vec<u8> = bytes.clone().take(2).collect();
        let hex = std::str::from_utf8(&rest).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, hex) {
            (b'%', Some(code)) => {
                decoded.push(code);
                bytes.nth(1);
            }
            (b'+', _) => decoded.push(b' '),
            _ => decoded.push(byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
