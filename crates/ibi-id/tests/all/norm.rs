//! The standard's algorithms, transcribed literally without optimization, and a second reader of
//! labels written from the grammar alone. Independent of the crate under test; the fuzz targets use
//! this file too.
//!
//! Where a decision corrects an erratum of the standard, the transcription follows the decision and
//! cites its number (D1 …).

use std::net::{Ipv4Addr, Ipv6Addr};

/// Picoseconds: the standard's "decimal rational", exact.
pub(crate) type Rational = i128;

pub(crate) const ONE_SECOND: Rational = 1_000_000_000_000;

/// Algorithm 1: the prefix of a repository name. D1: only the first dot separates.
pub(crate) fn algorithm_1(computer: &str, port: u32) -> String {
    let (mut subdomain, mut first_word, mut part) = (String::new(), String::new(), 2);
    for c in computer.chars() {
        if c == '.' && part == 2 {
            part = 1;
        } else if part == 1 {
            subdomain.push(c);
        } else {
            first_word.push(c);
        }
    }
    let word_port = if port == 80 { first_word } else { format!("{first_word}.{port}") };
    format!("{subdomain}/{word_port}")
}

/// Algorithm 2: the suffix of a repository name.
pub(crate) fn algorithm_2(date: Rational) -> String {
    let (year, month, day, hour, minute, second) = extract(date);
    let mut suffix = format!("{year:04}/{month:02}.{day:02}.{hour:02}.{minute:02}");
    let fraction = fraction_digits(date);
    if fraction.is_empty() {
        if second != 0 {
            suffix = format!("{suffix}.{second:02}");
        }
    } else {
        suffix = format!("{suffix}.{second:02}.{fraction}");
    }
    suffix
}

/// EXTRACT: by counting years, then months.
fn extract(date: Rational) -> (i128, i128, i128, i128, i128, i128) {
    let seconds = date.div_euclid(ONE_SECOND);
    let (mut days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let mut year = 1970;
    while days < 0 {
        year -= 1;
        days += days_of_year(year);
    }
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of_month(year, month) {
        days -= days_of_month(year, month);
        month += 1;
    }
    (year, month, days + 1, of_day / 3600, of_day / 60 % 60, of_day % 60)
}

fn days_of_year(year: i128) -> i128 {
    (1..=12).map(|month| days_of_month(year, month)).sum()
}

fn days_of_month(year: i128, month: i128) -> i128 {
    match month {
        2 if year % 400 == 0 || (year % 4 == 0 && year % 100 != 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The digits after the point, with leading and without trailing zeros.
fn fraction_digits(date: Rational) -> String {
    format!("{:012}", date.rem_euclid(ONE_SECOND)).trim_end_matches('0').to_owned()
}

/// Algorithm 4 and its two global variables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Algorithm4 {
    pub(crate) last_date_for_suffix: Option<Rational>,
    pub(crate) r: Rational,
}

impl Algorithm4 {
    /// The date for the suffix, and the creation date until which line 7 waits.
    pub(crate) fn create_date(&mut self, current_date: Rational) -> (Rational, Rational) {
        let r = self.r;
        let int = |date: Rational, step: Rational| step * date.div_euclid(step);
        let rounded_date = int(current_date, r);
        if self.last_date_for_suffix.is_none() {
            self.last_date_for_suffix = Some(rounded_date - r);
        }
        let last = int(self.last_date_for_suffix.unwrap(), r);
        let creation_date = (last + r).max(rounded_date);
        let (mut short_date, mut s, mut t) = (creation_date, r, creation_date);
        while last < short_date {
            s *= 10;
            if s == 10 * ONE_SECOND {
                s = 60 * ONE_SECOND;
            }
            t = short_date;
            if s > 60 * ONE_SECOND {
                break;
            }
            short_date = int(creation_date, s);
        }
        self.last_date_for_suffix = Some(t);
        (t, creation_date)
    }
}

/// The 2011 edition as functions of the whole list of requests, in order: (t', date for the suffix)
/// of each.
pub(crate) fn edition_2011(requests: &[Rational]) -> Vec<(Rational, Rational)> {
    let floor = |date: Rational, step: Rational| step * date.div_euclid(step);
    let mut rows: Vec<(Rational, Rational)> = Vec::new();
    for &now in requests {
        let now = floor(now, ONE_SECOND);
        let previous = rows.last().map(|row| row.0);
        let t = previous.map_or(now, |previous| (previous + ONE_SECOND).max(now));
        let minute = floor(t, 60 * ONE_SECOND);
        let free = previous.is_none_or(|previous| previous < minute);
        rows.push((t, if free { minute } else { t }));
    }
    rows
}

pub(crate) const DECIM_TO_IPV4: &str = "0123456789.";
pub(crate) const DECIM_TO_IPV6: &str = "0123456789abcdef:";
pub(crate) const DECIM_TO_IBIP: &str = "23456789ABCDEFGHJKLMNPQRSTU";
const LEGACY: &str = "23456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUV";

/// CONVERTTODECIMAL: a number of any size, as decimal digits.
pub(crate) fn convert_to_decimal(text: &str, table: &str) -> String {
    let base = table.len() as u32;
    let mut decimal = vec![0_u32];
    for c in text.chars() {
        let mut carry = table.find(c).expect("a digit of the table") as u32;
        for digit in decimal.iter_mut().rev() {
            carry += *digit * base;
            *digit = carry % 10;
            carry /= 10;
        }
        while carry > 0 {
            decimal.insert(0, carry % 10);
            carry /= 10;
        }
    }
    decimal.iter().map(|digit| char::from_digit(*digit, 10).unwrap()).collect()
}

/// CONVERTFROMDECIMAL.
pub(crate) fn convert_from_decimal(decimal: &str, table: &str) -> String {
    let base = table.len() as u32;
    let mut decimal: Vec<u32> = decimal.chars().map(|c| c.to_digit(10).unwrap()).collect();
    let mut text = String::new();
    loop {
        let mut remainder = 0;
        for digit in &mut decimal {
            remainder = remainder * 10 + *digit;
            *digit = remainder / base;
            remainder %= base;
        }
        text.insert(0, table.chars().nth(remainder as usize).unwrap());
        if decimal.iter().all(|digit| *digit == 0) {
            return text;
        }
    }
}

/// Algorithm 5: the prefix of an IBIp; the IP as text.
pub(crate) fn algorithm_5(ip: &str, port: u32) -> String {
    let coded_port =
        if port == 800 { String::new() } else { convert_from_decimal(&port.to_string(), DECIM_TO_IBIP) };
    let (table, mark) = if ip.contains('.') { (DECIM_TO_IPV4, 'W') } else { (DECIM_TO_IPV6, 'X') };
    let coded_ip = convert_from_decimal(&convert_to_decimal(ip, table), DECIM_TO_IBIP);
    format!("{coded_ip}{mark}{coded_port}")
}

/// Algorithm 6: the suffix of an IBIp. D3: each leading zero of the fraction is one digit zero.
pub(crate) fn algorithm_6(date: Rational) -> String {
    let second = date.div_euclid(ONE_SECOND) - 807_235_200;
    let suffix = convert_from_decimal(&second.to_string(), DECIM_TO_IBIP);
    let fraction = fraction_digits(date);
    if fraction.is_empty() {
        return suffix;
    }
    let rest = fraction.trim_start_matches('0');
    let zeros = "2".repeat(fraction.len() - rest.len());
    format!("{suffix}W{zeros}{}", convert_from_decimal(rest, DECIM_TO_IBIP))
}

/// RFC 5952 by hand; IPv4-mapped addresses in hex (D4).
pub(crate) fn ipv6_text(ip: Ipv6Addr) -> String {
    let groups: Vec<String> = ip.segments().iter().map(|group| format!("{group:x}")).collect();
    let zero_run = |from: usize| groups[from..].iter().take_while(|group| *group == "0").count();
    // The longest run of two or more zeros, the first of equal ones.
    let (start, length) = (0..8)
        .map(|from| (from, zero_run(from)))
        .fold((0, 0), |best, next| if next.1 > best.1 { next } else { best });
    if length < 2 {
        return groups.join(":");
    }
    format!("{}::{}", groups[..start].join(":"), groups[start + length..].join(":"))
}

/// The meaning of a label: its form, host or IP, port and date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) form: &'static str,
    pub(crate) from: String,
    pub(crate) port: u32,
    pub(crate) date: Rational,
}

/// Parses a label by the grammar and the validity rules (1.1 to 1.4), by splitting the text.
pub(crate) fn read(text: &str) -> Option<Meaning> {
    if text.len() > 255 {
        return None;
    }
    match text.split('/').collect::<Vec<_>>()[..] {
        [subdomain, word, year, rest] => read_repository(subdomain, word, year, rest),
        [prefix, suffix] => read_ibip(prefix, suffix).or_else(|| read_legacy(prefix, suffix)),
        _ => None,
    }
}

fn read_repository(subdomain: &str, word: &str, year: &str, rest: &str) -> Option<Meaning> {
    let subdomain = subdomain.strip_suffix('.').unwrap_or(subdomain);
    let last_word = subdomain.split('.').next_back()?;
    let (word, port) = match word.find(['.', '@']) {
        Some(at) => (&word[..at], number(&word[at + 1..])?),
        None => (word, 80),
    };
    let is_word = |word: &str| {
        !word.is_empty()
            && word.len() <= 63
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !word.starts_with('-')
            && !word.ends_with('-')
    };
    let host_valid = subdomain.split('.').chain([word]).all(is_word)
        && last_word.starts_with(|c: char| c.is_ascii_alphabetic());
    let fields: Vec<&str> = rest.splitn(6, '.').collect();
    let [month, day, hour, minute, ref more @ ..] = fields[..] else { return None };
    let second = more.first().copied().unwrap_or("00");
    let fraction = more.get(1).copied().unwrap_or("0");
    let two_digits = [month, day, hour, minute, second].iter().all(|field| field.len() == 2);
    if !host_valid || !(1..=65535).contains(&port) || year.len() != 4 || !two_digits {
        return None;
    }
    if fraction.len() > 12 || number(fraction).is_none() {
        return None;
    }
    let [year, month, day, hour, minute, second] =
        [year, month, day, hour, minute, second].map(|field| number(field).unwrap_or(u64::MAX) as i128);
    let real = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_of_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !real {
        return None;
    }
    let mut days = days_of_year_since_1(year - 1) - 719_162;
    days += (1..month).map(|month| days_of_month(year, month)).sum::<i128>() + day - 1;
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    let picos = number(&format!("{fraction:0<12}"))? as i128;
    Some(Meaning {
        form: "rep",
        from: format!("{word}.{subdomain}").to_ascii_lowercase(),
        port: port as u32,
        date: seconds * ONE_SECOND + picos,
    })
}

/// Days from 0001-01-01 to the end of a year.
fn days_of_year_since_1(year: i128) -> i128 {
    365 * year + year / 4 - year / 100 + year / 400
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    // Anything that does not fit is far beyond every limit.
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

fn read_ibip(prefix: &str, suffix: &str) -> Option<Meaning> {
    let (prefix, suffix) = (prefix.to_ascii_uppercase(), suffix.to_ascii_uppercase());
    let mark = prefix.find(['W', 'X'])?;
    let (coded_ip, coded_port) = (&prefix[..mark], &prefix[mark + 1..]);
    let ip = if prefix[mark..].starts_with('W') {
        let text = convert_from_decimal(&coded(coded_ip)?, DECIM_TO_IPV4);
        let text = text.trim_start_matches('0');
        [text.to_owned(), format!("0{text}")]
            .iter()
            .find_map(|text| text.parse::<Ipv4Addr>().ok())?
            .to_string()
    } else {
        let text = convert_from_decimal(&coded(coded_ip)?, DECIM_TO_IPV6);
        let text = text.trim_start_matches('0');
        let ip =
            [text.to_owned(), format!("0{text}")].iter().find_map(|text| text.parse::<Ipv6Addr>().ok())?;
        ipv6_text(ip)
    };
    let port = if coded_port.is_empty() { 800 } else { number(&coded(coded_port)?)? };
    let (coded_second, coded_fraction) = match suffix.split_once('W') {
        Some((second, fraction)) => (second, Some(fraction)),
        None => (&suffix[..], None),
    };
    let seconds = number(&coded(coded_second)?)? as i128 + 807_235_200;
    let picos = match coded_fraction {
        None => 0,
        Some(coded_fraction) => {
            let value = coded(coded_fraction)?;
            let rest = coded_fraction.trim_start_matches('2');
            let zeros = coded_fraction.len() - rest.len();
            let digits = if rest.is_empty() { "0".repeat(zeros) } else { "0".repeat(zeros) + &value };
            if digits.len() > 12 {
                return None;
            }
            number(&format!("{digits:0<12}"))? as i128
        }
    };
    if !(1..=65535).contains(&port) || seconds > 253_402_300_799 {
        return None;
    }
    Some(Meaning { form: "ibip", from: ip, port: port as u32, date: seconds * ONE_SECOND + picos })
}

/// The decimal number encoded by a word of base-27 digits.
fn coded(word: &str) -> Option<String> {
    let digits = !word.is_empty() && word.chars().all(|c| DECIM_TO_IBIP.contains(c));
    digits.then(|| convert_to_decimal(word, DECIM_TO_IBIP))
}

fn read_legacy(prefix: &str, suffix: &str) -> Option<Meaning> {
    let words = prefix.chars().all(|c| c.is_ascii_alphanumeric()) && prefix.contains('Z');
    if !words || suffix.is_empty() || !suffix.chars().all(|c| LEGACY.contains(c)) {
        return None;
    }
    let seconds = number(&convert_to_decimal(suffix, LEGACY))? as i128 + 807_235_200;
    let date = seconds.checked_mul(ONE_SECOND)?;
    (seconds <= 253_402_300_799).then(|| Meaning { form: "legacy", from: prefix.to_owned(), port: 0, date })
}
