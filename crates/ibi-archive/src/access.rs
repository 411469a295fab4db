//! Who may open the files of an item: everybody, clients of some addresses, or everybody from a day on (2.2).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use ibi_protocol::shown::shown;

/// As many ranges as a rule may have.
pub const MOST_RANGES: usize = 64;

/// The access rule of an item. The metadata is open to everybody, whatever it says.
///
/// | text | who may open the files |
/// | --- | --- |
/// | `public` | everybody |
/// | `ip:192.0.2.0/24,2001:db8::7` | clients of these ranges and addresses |
/// | `until:2030-01-31` | nobody until 2030-01-31T00:00Z, everybody from then on |
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Access {
    /// Everybody.
    #[default]
    Public,
    /// Clients of these addresses; from 1 to [`MOST_RANGES`], or what is written is not read again.
    Ip(Vec<Range>),
    /// Nobody before this day begins in UTC, everybody from then on.
    Until(Date),
}

impl Access {
    /// Whether a client of this address may open the files at this time, in seconds since the Unix epoch.
    pub fn allows(&self, ip: IpAddr, unix_seconds: i64) -> bool {
        match self {
            Access::Public => true,
            Access::Ip(ranges) => ranges.iter().any(|range| range.contains(ip)),
            Access::Until(date) => unix_seconds >= date.unix_seconds(),
        }
    }
}

impl FromStr for Access {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        match text.split_once(':') {
            None if text == "public" => Ok(Access::Public),
            Some(("ip", ranges)) => {
                let count = ranges.split(',').count();
                if count > MOST_RANGES {
                    return Err(AccessError::TooMany { count });
                }
                ranges.split(',').map(|range| range.trim().parse()).collect::<Result<_, _>>().map(Access::Ip)
            }
            Some(("until", date)) => date.parse().map(Access::Until),
            _ => Err(AccessError::Rule { given: shown(text) }),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Public => f.write_str("public"),
            Access::Ip(ranges) => {
                f.write_str("ip:")?;
                ranges.iter().enumerate().try_for_each(|(at, range)| {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{range}")
                })
            }
            Access::Until(date) => write!(f, "until:{date}"),
        }
    }
}

impl TryFrom<String> for Access {
    type Error = AccessError;

    fn try_from(text: String) -> Result<Self, AccessError> {
        text.parse()
    }
}

impl From<Access> for String {
    fn from(access: Access) -> Self {
        access.to_string()
    }
}

/// One address, or all that begin with the same bits: `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    first: IpAddr,
    prefix: u8,
}

impl Range {
    /// Whether the address lies in the range. An IPv4 address that is written as IPv6 (`::ffff:192.0.2.7`), as systems
    /// with both hand it over, counts as IPv4.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_ipv4() == self.first.is_ipv4() && first_of(ip, self.prefix) == self.first
    }
}

impl FromStr for Range {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let (address, prefix) = match text.split_once('/') {
            None => (text, None),
            Some((address, prefix)) => (address, Some(prefix)),
        };
        let address: IpAddr = address.parse().map_err(|_| AccessError::Address { given: shown(text) })?;
        let bits = bits_of(address);
        let prefix = match prefix {
            None => bits,
            // A sign is a number to `parse`.
            Some(digits) if digits.bytes().all(|c| c.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|prefix| *prefix <= bits)
                .ok_or(AccessError::Prefix { given: shown(text), bits })?,
            Some(_) => return Err(AccessError::Prefix { given: shown(text), bits }),
        };
        let range = Range { first: first_of(address, prefix), prefix };
        // No client has such an address: it counts as IPv4.
        if let IpAddr::V4(first) = range.first.to_canonical()
            && address.is_ipv6()
            && let Some(prefix) = prefix.checked_sub(96)
        {
            let meant = Range { first: IpAddr::V4(first), prefix };
            return Err(AccessError::Mapped { given: shown(text), meant });
        }
        if range.first != address {
            return Err(AccessError::HostBits { given: shown(text), range, address });
        }
        Ok(range)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == bits_of(self.first) {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}/{}", self.first, self.prefix)
        }
    }
}

fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all bits after the prefix cleared.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    let rest = u32::from(bits_of(address).saturating_sub(prefix));
    match address {
        // All bits cleared is a shift that does not exist.
        IpAddr::V4(address) => {
            IpAddr::V4((address.to_bits() & u32::MAX.checked_shl(rest).unwrap_or_default()).into())
        }
        IpAddr::V6(address) => {
            IpAddr::V6((address.to_bits() & u128::MAX.checked_shl(rest).unwrap_or_default()).into())
        }
    }
}

/// A day of the calendar, from 0001-01-01 to 9999-12-31.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// When the day begins in UTC, in seconds since the Unix epoch.
    pub fn unix_seconds(&self) -> i64 {
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        // Years that begin in March have the leap day last.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let before_year = 365 * year + year / 4 - year / 100 + year / 400;
        let before_month = (153 * month + 2) / 5;
        // From 0000-03-01 to 1970-01-01 there are 719,468 days.
        (before_year + before_month + i64::from(self.day) - 1 - 719_468) * 86_400
    }
}

impl FromStr for Date {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let digit = |c: u8| c.is_ascii_digit().then(|| u16::from(c - b'0'));
        let read = || {
            let &[a, b, c, d, b'-', e, f, b'-', g, h] = text.as_bytes() else { return None };
            let year = digit(a)? * 1000 + digit(b)? * 100 + digit(c)? * 10 + digit(d)?;
            let month = u8::try_from(digit(e)? * 10 + digit(f)?).ok()?;
            let day = u8::try_from(digit(g)? * 10 + digit(h)?).ok()?;
            (year > 0 && (1..=days_in(year, month)).contains(&day)).then_some(Date { year, month, day })
        };
        read().ok_or_else(|| AccessError::Date { given: shown(text) })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// None for a month that does not exist.
fn days_in(year: u16, month: u8) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u8::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// A text that is no access rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// None of the three.
    #[error(
        "`{given}` is not an access rule: write `public`, `ip:` with addresses and ranges as in \
         ip:192.0.2.0/24,2001:db8::7, or `until:` with a day as in until:2030-01-31"
    )]
    Rule {
        /// What was given.
        given: String,
    },
    /// Not an address.
    #[error(
        "`{given}` is not an IP address or range: write it as in 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32, several with \
         commas between"
    )]
    Address {
        /// What was given.
        given: String,
    },
    /// The number after the slash is none, or too large.
    #[error("`{given}` is not a range: after the slash stands how many bits are the same, from 0 to {bits}")]
    Prefix {
        /// What was given.
        given: String,
        /// The most.
        bits: u8,
    },
    /// A range that does not begin with its first address.
    #[error(
        "`{given}` begins inside a range: write {range} for the whole range, or {address} for the one address"
    )]
    HostBits {
        /// What was given.
        given: String,
        /// The range that the address lies in.
        range: Range,
        /// The address.
        address: IpAddr,
    },
    /// An IPv4 range in the clothes of IPv6.
    #[error("`{given}` is IPv4 written as IPv6, which no client has: write {meant}")]
    Mapped {
        /// What was given.
        given: String,
        /// The same in IPv4.
        meant: Range,
    },
    /// More than [`MOST_RANGES`].
    #[error("{count} ranges are too many for one access rule: join them to {MOST_RANGES} at most")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// Not a day.
    #[error("`{given}` is not a day: write one that exists as year-month-day, as in 2030-01-31")]
    Date {
        /// What was given.
        given: String,
    },
}

#[cfg(test)]
mod tests;
