//! Access rules: the files of an item are open to everybody, to clients with certain addresses, or
//! to everybody from a given day on (2.2).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use ibi_protocol::untrusted_text::quote_untrusted;

/// The most ranges per rule.
pub const MAX_ACCESS_RANGES: usize = 64;

/// The access rule of an item. Metadata is always open to everybody.
///
/// | text | who may open the files |
/// | --- | --- |
/// | `public` | everybody |
/// | `ip:192.0.2.0/24,2001:db8::7` | clients of these ranges and addresses |
/// | `until:2030-01-31` | nobody until 2030-01-31T00:00Z, everybody from then on |
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum AccessRule {
    /// Everybody.
    #[default]
    Public,
    /// Clients with these addresses. Must have 1 to [`MAX_ACCESS_RANGES`] ranges, or the written
    /// rule cannot be parsed again.
    Ip(Vec<AddressRange>),
    /// Embargo: nobody before this day begins in UTC, everybody from then on.
    Until(CalendarDate),
}

impl AccessRule {
    /// Whether a client with this address may open the files at this time, in seconds since the
    /// Unix epoch.
    pub fn allows(&self, ip: IpAddr, unix_seconds: i64) -> bool {
        match self {
            AccessRule::Public => true,
            AccessRule::Ip(ranges) => ranges.iter().any(|range| range.contains(ip)),
            AccessRule::Until(date) => unix_seconds >= date.unix_seconds(),
        }
    }
}

impl FromStr for AccessRule {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        match text.split_once(':') {
            None if text == "public" => Ok(AccessRule::Public),
            Some(("ip", ranges)) => {
                let count = ranges.split(',').count();
                if count > MAX_ACCESS_RANGES {
                    return Err(AccessError::TooMany { count });
                }
                ranges
                    .split(',')
                    .map(|range| range.trim().parse())
                    .collect::<Result<_, _>>()
                    .map(AccessRule::Ip)
            }
            Some(("until", date)) => date.parse().map(AccessRule::Until),
            _ => Err(AccessError::Rule { given: quote_untrusted(text) }),
        }
    }
}

impl fmt::Display for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessRule::Public => f.write_str("public"),
            AccessRule::Ip(ranges) => {
                f.write_str("ip:")?;
                ranges.iter().enumerate().try_for_each(|(at, range)| {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{range}")
                })
            }
            AccessRule::Until(date) => write!(f, "until:{date}"),
        }
    }
}

impl TryFrom<String> for AccessRule {
    type Error = AccessError;

    fn try_from(text: String) -> Result<Self, AccessError> {
        text.parse()
    }
}

impl From<AccessRule> for String {
    fn from(access: AccessRule) -> Self {
        access.to_string()
    }
}

/// One address, or all addresses with the same prefix: `192.0.2.7`, `192.0.2.0/24`,
/// `2001:db8::/32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressRange {
    first: IpAddr,
    prefix: u8,
}

impl AddressRange {
    /// Whether the address is in the range. An IPv4-mapped IPv6 address (`::ffff:192.0.2.7`), as
    /// dual-stack systems report it, counts as IPv4.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        ip.is_ipv4() == self.first.is_ipv4() && network_address(ip, self.prefix) == self.first
    }
}

impl FromStr for AddressRange {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let (address, prefix) = match text.split_once('/') {
            None => (text, None),
            Some((address, prefix)) => (address, Some(prefix)),
        };
        let address: IpAddr =
            address.parse().map_err(|_| AccessError::Address { given: quote_untrusted(text) })?;
        let bits = bits_of(address);
        let prefix = match prefix {
            None => bits,
            // `parse` accepts a leading sign.
            Some(digits) if digits.bytes().all(|c| c.is_ascii_digit()) => digits
                .parse()
                .ok()
                .filter(|prefix| *prefix <= bits)
                .ok_or(AccessError::Prefix { given: quote_untrusted(text), bits })?,
            Some(_) => return Err(AccessError::Prefix { given: quote_untrusted(text), bits }),
        };
        let range = AddressRange { first: network_address(address, prefix), prefix };
        // No client has an IPv4-mapped address: see `contains`.
        if let IpAddr::V4(first) = range.first.to_canonical()
            && address.is_ipv6()
            && let Some(prefix) = prefix.checked_sub(96)
        {
            let meant = AddressRange { first: IpAddr::V4(first), prefix };
            return Err(AccessError::Mapped { given: quote_untrusted(text), meant });
        }
        if range.first != address {
            return Err(AccessError::HostBits { given: quote_untrusted(text), range, address });
        }
        Ok(range)
    }
}

impl fmt::Display for AddressRange {
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
fn network_address(address: IpAddr, prefix: u8) -> IpAddr {
    let rest = u32::from(bits_of(address).saturating_sub(prefix));
    match address {
        // A shift by all bits would overflow.
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
pub struct CalendarDate {
    year: u16,
    month: u8,
    day: u8,
}

impl CalendarDate {
    /// When the day begins in UTC, in seconds since the Unix epoch.
    pub fn unix_seconds(&self) -> i64 {
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        // In a year that begins in March, the leap day comes last.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let before_year = 365 * year + year / 4 - year / 100 + year / 400;
        let before_month = (153 * month + 2) / 5;
        // From 0000-03-01 to 1970-01-01 there are 719,468 days.
        (before_year + before_month + i64::from(self.day) - 1 - 719_468) * 86_400
    }
}

impl FromStr for CalendarDate {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let digit = |c: u8| c.is_ascii_digit().then(|| u16::from(c - b'0'));
        let read = || {
            let &[a, b, c, d, b'-', e, f, b'-', g, h] = text.as_bytes() else { return None };
            let year = digit(a)? * 1000 + digit(b)? * 100 + digit(c)? * 10 + digit(d)?;
            let month = u8::try_from(digit(e)? * 10 + digit(f)?).ok()?;
            let day = u8::try_from(digit(g)? * 10 + digit(h)?).ok()?;
            (year > 0 && (1..=days_in(year, month)).contains(&day)).then_some(CalendarDate {
                year,
                month,
                day,
            })
        };
        read().ok_or_else(|| AccessError::Date { given: quote_untrusted(text) })
    }
}

impl fmt::Display for CalendarDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Returns 0 for a month that does not exist.
fn days_in(year: u16, month: u8) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u8::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Why a text is not an access rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// None of the three forms.
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
    /// The prefix length is not a number, or is too large.
    #[error("`{given}` is not a range: the prefix length must be 0 to {bits}")]
    Prefix {
        /// What was given.
        given: String,
        /// The largest prefix length.
        bits: u8,
    },
    /// A range whose address has bits after the prefix.
    #[error(
        "`{given}` begins inside a range: write {range} for the whole range, or {address} for the one address"
    )]
    HostBits {
        /// What was given.
        given: String,
        /// The range that contains the address.
        range: AddressRange,
        /// The address.
        address: IpAddr,
    },
    /// An IPv4-mapped IPv6 range.
    #[error("`{given}` is an IPv4-mapped address: write it as IPv4, {meant}")]
    Mapped {
        /// What was given.
        given: String,
        /// The same in IPv4.
        meant: AddressRange,
    },
    /// More than [`MAX_ACCESS_RANGES`].
    #[error("{count} ranges are too many for one access rule: join them to {MAX_ACCESS_RANGES} at most")]
    TooMany {
        /// How many were given.
        count: usize,
    },
    /// Not a date.
    #[error("`{given}` is not a day: write one that exists as year-month-day, as in 2030-01-31")]
    Date {
        /// What was given.
        given: String,
    },
}

#[cfg(test)]
mod tests;
