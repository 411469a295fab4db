//! Why there is no TLS connection, in plain words and with the next step.

use std::error::Error;
use std::fmt;
use std::io;

use rustls::CertificateError;

/// Maximum number of names of a foreign certificate that are repeated, and of bytes of each.
const MAX_NAMES_SHOWN: usize = 5;
const MAX_NAME_BYTES: usize = 100;

/// Why a server cannot be asked over TLS. It is never asked without TLS instead.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateProblem {
    /// The certificate is for other names: these.
    WrongName {
        /// The names in the certificate, bounded and printable.
        names: Vec<String>,
    },
    /// The certificate is out of date.
    Expired,
    /// The certificate is from the future.
    NotYetValid,
    /// The issuer is not trusted.
    UnknownIssuer,
    /// The certificate is one of an issuer, not of a server.
    IssuerItself,
    /// The server does not speak TLS.
    NoTls,
    /// Anything else.
    Other(String),
}

impl CertificateProblem {
    /// The problem behind an error of a client, if TLS is the reason.
    pub(crate) fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(found) = cause {
            if let Some(error) = found.downcast_ref::<rustls::Error>() {
                return Some(Self::from(error));
            }
            // The source of such an error is the source of what is in it, not that itself.
            cause = match found.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                Some(inside) => Some(inside),
                None => found.source(),
            };
        }
        None
    }

    /// The problem behind a failed handshake, if TLS is the reason.
    pub(crate) fn find_io(error: &io::Error) -> Option<Self> {
        error.get_ref().and_then(|inside| Self::find(inside))
    }

    /// One word for programs. The details are left out.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WrongName { .. } => "wrong-name",
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::UnknownIssuer => "unknown-issuer",
            Self::IssuerItself => "issuer-itself",
            Self::NoTls => "no-tls",
            Self::Other(_) => "tls-failed",
        }
    }

    /// Reads such a word.
    pub fn from_code(code: &str) -> Option<Self> {
        let all = [
            Self::WrongName { names: Vec::new() },
            Self::Expired,
            Self::NotYetValid,
            Self::UnknownIssuer,
            Self::IssuerItself,
            Self::NoTls,
            Self::Other("the handshake failed".to_owned()),
        ];
        all.into_iter().find(|problem| problem.code() == code)
    }

    /// What the operator of the asking side does next.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::WrongName { .. } => {
                "use a name in the certificate, or ask its operator for a certificate with this name"
            }
            Self::Expired => "its operator must renew it and reload the server (SIGHUP)",
            Self::NotYetValid => "compare the clocks of both machines",
            Self::UnknownIssuer => {
                "its server must send the whole chain; trust a private issuer with --ca-file"
            }
            Self::IssuerItself => "its operator needs a certificate for a server (CA:FALSE)",
            Self::NoTls => "its operator must serve with --tls-cert, or use http://",
            Self::Other(_) => "compare the TLS settings of both sides",
        }
    }

    /// What the operator of the server with the certificate does next.
    pub fn next_step_of_owner(&self) -> &'static str {
        match self {
            Self::WrongName { .. } => {
                "get a certificate for the name in --address, or use a name in the certificate there"
            }
            Self::Expired => "renew it and reload the server (SIGHUP)",
            Self::NotYetValid => "compare the clocks of both machines",
            Self::UnknownIssuer => {
                "put the whole chain into --tls-cert; a private issuer must be trusted there (--ca-file)"
            }
            Self::IssuerItself => "get a certificate for a server (CA:FALSE)",
            Self::NoTls => {
                "serve with --tls-cert, or set --address to the proxy that terminates TLS, or \
                use http://"
            }
            Self::Other(_) => "compare the TLS settings of both sides",
        }
    }

    /// The whole of it for the operator of the asking side, who may also see the names.
    pub fn for_operator(&self) -> String {
        match self {
            Self::WrongName { names } if !names.is_empty() => {
                format!("{self}, but for {}: {}", names.join(", "), self.next_step())
            }
            _ => format!("{self}: {}", self.next_step()),
        }
    }
}

/// Without the names in the certificate: whoever reads this may not be an operator.
impl fmt::Display for CertificateProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongName { .. } => f.write_str("the certificate is not for this name"),
            Self::Expired => f.write_str("the certificate has expired"),
            Self::NotYetValid => f.write_str("the certificate is not valid yet"),
            Self::UnknownIssuer => f.write_str("the issuer of the certificate is not known here"),
            Self::IssuerItself => f.write_str("the certificate is one of an issuer, not of a server"),
            Self::NoTls => f.write_str("there is no TLS at this address"),
            Self::Other(why) => write!(f, "no TLS connection: {why}"),
        }
    }
}

impl From<&rustls::Error> for CertificateProblem {
    fn from(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => Self::from(error),
            rustls::Error::InvalidMessage(_) => Self::NoTls,
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<&CertificateError> for CertificateProblem {
    fn from(error: &CertificateError) -> Self {
        match error {
            CertificateError::NotValidForName => Self::WrongName { names: Vec::new() },
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names = presented.iter().filter_map(|name| printable_name(name));
                Self::WrongName { names: names.take(MAX_NAMES_SHOWN).collect() }
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            // A known issuer of the same name has another key: often one that was made anew.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
            // The reason is of a library that is no dependency of this crate.
            CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                Self::IssuerItself
            }
            other => Self::Other(other.to_string()),
        }
    }
}

/// A name as the library writes it, `DnsName("a.example")`: the name alone.
fn printable_name(name: &str) -> Option<String> {
    let inside = name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    let name = inside.trim_matches('"');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '*' | ':');
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len()) && name.chars().all(is_plain);
    fits.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate comes from whoever answers: nothing in it may disturb a log or a terminal.
    #[test]
    fn names_of_a_foreign_certificate_are_bounded() {
        let mut presented: Vec<String> = vec![
            "DnsName(\"a.example\")".to_owned(),
            "DnsName(\"\\u{1b}[2J\")".to_owned(),
            format!("DnsName(\"{}\")", "x".repeat(300)),
            "IpAddress(192.0.2.7)".to_owned(),
        ];
        presented.extend((0..20).map(|n| format!("DnsName(\"*.{n}.example\")")));
        let expected = rustls::pki_types::ServerName::try_from("b.example").unwrap();
        let problem =
            CertificateProblem::from(&CertificateError::NotValidForNameContext { expected, presented });
        assert_eq!(problem.to_string(), "the certificate is not for this name");
        assert!(
            problem.for_operator().starts_with(
                "the certificate is not for this name, but for a.example, 192.0.2.7, *.0.example, \
                 *.1.example, *.2.example: use a name in the certificate"
            ),
            "{}",
            problem.for_operator()
        );
    }

    #[test]
    fn every_code_is_read_back() {
        for code in [
            "wrong-name",
            "expired",
            "not-yet-valid",
            "unknown-issuer",
            "issuer-itself",
            "no-tls",
            "tls-failed",
        ] {
            assert_eq!(CertificateProblem::from_code(code).unwrap().code(), code);
        }
        assert_eq!(CertificateProblem::from_code("1234567890-1234567890"), None);
    }
}
