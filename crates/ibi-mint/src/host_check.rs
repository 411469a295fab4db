//! Whether a host name or address belongs to this machine: a label's host and port should be those
//! of the computer that mints (001 §4). This cannot be enforced, so the operator is warned, not
//! refused (D36).

use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _, UdpSocket};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use ibi_id::{Host, Label, host_not_unique, ip_not_unique};
use ibi_store::Subsystem;

/// Timeout for DNS; afterwards the command continues without the answer.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(3);

/// Why a prefix may not be this machine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MintHostWarning {
    /// DNS knows no address of the name.
    Unknown {
        /// The name.
        host: String,
    },
    /// DNS did not answer in time.
    Unanswered {
        /// The name.
        host: String,
    },
    /// DNS leads elsewhere.
    Elsewhere {
        /// The name.
        host: String,
        /// Where it leads.
        addresses: Vec<IpAddr>,
    },
    /// No interface has the address.
    ForeignAddress(IpAddr),
}

impl fmt::Display for MintHostWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OWN_HOST_HINT: &str = "labels are unique only under a name or an address that is this machine's own, or whose requests reach it";
        match self {
            Self::Unknown { host } => write!(f, "DNS knows no address of {host}: {OWN_HOST_HINT}"),
            Self::Unanswered { host } => {
                write!(
                    f,
                    "DNS did not say within {} s where {host} is: {OWN_HOST_HINT}",
                    DNS_TIMEOUT.as_secs()
                )
            }
            Self::Elsewhere { host, addresses } => {
                let addresses: Vec<String> = addresses.iter().take(4).map(IpAddr::to_string).collect();
                let addresses = addresses.join(", ");
                write!(
                    f,
                    "{host} leads to {addresses}, which no interface of this machine has: {OWN_HOST_HINT}"
                )
            }
            Self::ForeignAddress(ip) => write!(f, "no interface of this machine has {ip}: {OWN_HOST_HINT}"),
        }
    }
}

/// Warnings about the prefixes of a subsystem. Prefixes that are not globally unique, which the
/// operator allowed explicitly, are not checked.
pub fn host_warnings(subsystem: &Subsystem) -> Vec<MintHostWarning> {
    let example =
        |prefix: &Option<String>, suffix: &str| prefix.as_ref().map(|prefix| format!("{prefix}/{suffix}"));
    let mut doubts = Vec::new();
    if let Some(text) = example(&subsystem.rep, "2009/02.16.17.46")
        && let Ok(label) = Label::parse(&text)
        && let Some(host) = label.host().filter(|host| host_not_unique(*host).is_none())
    {
        doubts.extend(host_warning(host, |name| look_up(name, DNS_TIMEOUT), is_own_address));
    }
    if let Some(text) = example(&subsystem.ibip, "34PGRBS")
        && let Some(ip) = Label::parse(&text).ok().and_then(|label| label.ip())
        && ip_not_unique(ip).is_none()
        && !is_own_address(ip)
    {
        doubts.push(MintHostWarning::ForeignAddress(ip));
    }
    doubts
}

fn host_warning(
    host: Host<'_>,
    look_up: impl FnOnce(&str) -> Option<io::Result<Vec<IpAddr>>>,
    is_own: impl Fn(IpAddr) -> bool,
) -> Option<MintHostWarning> {
    let host = host.to_string();
    match look_up(&host) {
        None => Some(MintHostWarning::Unanswered { host }),
        Some(Err(_)) => Some(MintHostWarning::Unknown { host }),
        Some(Ok(addresses)) if addresses.is_empty() => Some(MintHostWarning::Unknown { host }),
        Some(Ok(addresses)) if addresses.iter().any(|ip| is_own(*ip)) => None,
        Some(Ok(addresses)) => Some(MintHostWarning::Elsewhere { host, addresses }),
    }
}

/// Resolves a name; `None` on timeout. The system's lookup cannot be cancelled: its thread is left
/// running.
fn look_up(host: &str, timeout: Duration) -> Option<io::Result<Vec<IpAddr>>> {
    let (tell, told) = mpsc::channel();
    let host = host.to_owned();
    let asking = std::thread::Builder::new().name("dns".to_owned()).spawn(move || {
        let found = (host.as_str(), 0).to_socket_addrs();
        let found = found.map(|addresses| addresses.map(|address| address.ip()).collect());
        // The receiver may have timed out.
        let _ = tell.send(found);
    });
    asking.ok()?;
    told.recv_timeout(timeout).ok()
}

/// Whether an interface of this machine has the address: only such an address can be bound.
fn is_own_address(ip: IpAddr) -> bool {
    !ip.is_unspecified() && UdpSocket::bind((ip, 0)).is_ok()
}

/// The name that this machine gives itself, with its domain where it knows one.
pub fn machine_name() -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).ok();
    let own = ["/proc/sys/kernel/hostname", "/etc/hostname"].into_iter().find_map(read)?;
    let own = own.trim().to_ascii_lowercase();
    let names = [read("/etc/hosts"), read("/etc/resolv.conf")].map(Option::unwrap_or_default);
    Some(full_name(&own, &names[0], &names[1])).filter(|name| !name.is_empty())
}

/// A name of one word gets the domain that `/etc/hosts` or `/etc/resolv.conf` tell.
fn full_name(own: &str, hosts: &str, resolver: &str) -> String {
    if own.contains('.') || own.is_empty() {
        return own.to_owned();
    }
    let lines = |text: &'static str, of: &str| {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines = of.lines().map(|line| line.split('#').next().unwrap_or_default());
        lines
            .map(words)
            .filter(move |words| text.is_empty() || words.first().is_some_and(|word| word == text))
            .collect::<Vec<_>>()
    };
    let own_domain = format!("{own}.");
    let named = lines("", hosts)
        .into_iter()
        .filter(|words| words.iter().skip(1).any(|word| word == own))
        .find_map(|words| words.into_iter().skip(1).find(|word| word.starts_with(&own_domain)));
    let domain = ["domain", "search"]
        .into_iter()
        .find_map(|name| lines(name, resolver).into_iter().next()?.into_iter().nth(1));
    let domain = domain.filter(|domain| !matches!(domain.as_str(), "." | "local" | "localdomain"));
    named.or_else(|| Some(format!("{own}.{}", domain?))).unwrap_or_else(|| own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d36_a_name_is_compared_with_dns_and_the_machines_addresses() {
        let host = Host::parse("archive.library.org.br").unwrap();
        let (ours, theirs) = (IpAddr::from([150, 163, 34, 243]), IpAddr::from([8, 8, 8, 8]));
        let doubt = |found| host_warning(host, |_| found, |ip| ip == ours);
        let name = || "archive.library.org.br".to_owned();
        assert_eq!(doubt(Some(Ok(vec![theirs, ours]))), None);
        assert_eq!(doubt(None), Some(MintHostWarning::Unanswered { host: name() }));
        assert_eq!(doubt(Some(Ok(Vec::new()))), Some(MintHostWarning::Unknown { host: name() }));
        assert_eq!(doubt(Some(Err(io::Error::other("x")))), Some(MintHostWarning::Unknown { host: name() }));
        let elsewhere = doubt(Some(Ok(vec![theirs]))).unwrap();
        assert_eq!(elsewhere, MintHostWarning::Elsewhere { host: name(), addresses: vec![theirs] });
        assert!(elsewhere.to_string().contains("leads to 8.8.8.8"), "{elsewhere}");
        assert!(is_own_address(IpAddr::from([127, 0, 0, 1])));
        assert!(!is_own_address(IpAddr::from([192, 0, 2, 1])) && !is_own_address(IpAddr::from([0, 0, 0, 0])));
    }

    #[test]
    fn d36_the_machines_own_name_gets_its_domain() {
        assert_eq!(full_name("a.b.br", "", ""), "a.b.br");
        assert_eq!(full_name("a", "127.0.1.1 a.library.br a # b", ""), "a.library.br");
        assert_eq!(
            full_name("a", "127.0.1.1 a", "nameserver 1.1.1.1\nsearch library.br inpe.br"),
            "a.library.br"
        );
        assert_eq!(full_name("a", "", "search local"), "a");
        assert_eq!(full_name("", "x", "y"), "");
    }
}
