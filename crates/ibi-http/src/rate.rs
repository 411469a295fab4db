//! Rate limits on expensive requests, per address and per token.
//!
//! Ordinary reads are not limited. Each policy is a bucket that holds `count` units and refills
//! within `window`: a client may use all units at once and then continues at the even rate. An IPv6
//! /64 network counts as one address. Response headers follow
//! draft-ietf-httpapi-ratelimit-headers-11.

mod table;

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::time::Instant;

use crate::Problem;
use crate::connection_slots::client_network;
use table::{BucketState, BucketTable};

/// Maximum window of a quota, in seconds.
const MAX_WINDOW_SECONDS: u64 = 86_400;

/// Maximum number of units of a quota.
const MAX_QUOTA_UNITS: u32 = 1_000_000_000;

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// A number of units per time window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateQuota {
    count: u32,
    window: Duration,
}

impl RateQuota {
    const fn per_minute(count: u32) -> Self {
        Self { count, window: Duration::from_secs(60) }
    }

    /// The burst size: units that a client may use at once.
    pub fn count(self) -> u32 {
        self.count
    }
}

impl FromStr for RateQuota {
    type Err = String;

    /// Parses `COUNT/SECONDS`.
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (count, seconds) = text.split_once('/')?;
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let read = is_number(count) && is_number(seconds);
            let (count, seconds) = (count.parse::<u32>().ok()?, seconds.parse::<u64>().ok()?);
            let fits = (1..=MAX_QUOTA_UNITS).contains(&count) && (1..=MAX_WINDOW_SECONDS).contains(&seconds);
            (read && fits).then(|| Self { count, window: Duration::from_secs(seconds) })
        };
        read().ok_or_else(|| {
            format!("`{text}` is not a quota: write COUNT/SECONDS, as in 1000/60, up to {MAX_QUOTA_UNITS}/{MAX_WINDOW_SECONDS}")
        })
    }
}

impl fmt::Display for RateQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.window.as_secs())
    }
}

macro_rules! policies {
    ($($(#[$what:meta])* $name:ident = $text:literal, $per_minute:literal;)*) => {
        /// What is limited, and for whom.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum RatePolicy {
            $($(#[$what])* $name,)*
        }

        impl RatePolicy {
            /// All policies.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name for operators and clients.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The quota unless the operator sets one.
            fn default_quota(self) -> RateQuota {
                match self { $(Self::$name => RateQuota::per_minute($per_minute),)* }
            }
        }
    };
}

policies! {
    /// Labels minted with one token.
    MintToken = "mint-token", 100_000;
    /// Labels minted from one address.
    MintAddress = "mint-address", 400_000;
    /// Drafts, publications and changes of items with one token.
    DepositToken = "deposit-token", 6_000;
    /// The same from one address.
    DepositAddress = "deposit-address", 24_000;
    /// Files of drafts sent with one token.
    UploadToken = "upload-token", 60_000;
    /// The same from one address.
    UploadAddress = "upload-address", 240_000;
    /// Pages of lists read from one address.
    ListAddress = "list-address", 3_000;
    /// Hints of links sent from one address.
    HintAddress = "hint-address", 600;
    /// Resolutions from one address that found nothing.
    UnknownAddress = "unknown-address", 1_200;
}

impl FromStr for RatePolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|policy| policy.name() == text);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|policy| policy.name()).collect();
            format!("there is no quota `{text}`: use one of {}", names.join(", "))
        })
    }
}

type RateExemption = dyn Fn(IpAddr) -> bool + Send + Sync;

/// The quotas of a server, and the exempt addresses.
#[derive(Clone)]
pub struct RateQuotas {
    quotas: Vec<(RatePolicy, Option<RateQuota>)>,
    exempt: Arc<RateExemption>,
}

impl Default for RateQuotas {
    fn default() -> Self {
        let quotas = RatePolicy::ALL.iter().map(|policy| (*policy, Some(policy.default_quota()))).collect();
        Self { quotas, exempt: Arc::new(|_| false) }
    }
}

impl RateQuotas {
    /// Sets or removes a quota.
    pub fn set(&mut self, policy: RatePolicy, quota: Option<RateQuota>) {
        self.quotas.iter_mut().filter(|(known, _)| *known == policy).for_each(|(_, set)| *set = quota);
    }

    /// Sets which addresses are exempt.
    pub fn exempt(&mut self, exempt: impl Fn(IpAddr) -> bool + Send + Sync + 'static) {
        self.exempt = Arc::new(exempt);
    }

    fn quota(&self, policy: RatePolicy) -> Option<RateQuota> {
        self.quotas.iter().find(|(known, _)| *known == policy).and_then(|(_, quota)| *quota)
    }
}

impl fmt::Debug for RateQuotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateQuotas").field("quotas", &self.quotas).finish_non_exhaustive()
    }
}

/// The subject of a quota.
#[derive(Debug, Clone, Copy, Hash)]
pub enum RatedClient<'a> {
    /// A client address.
    Address(IpAddr),
    /// A token, by secret or id.
    Token(&'a str),
}

/// Enforces quotas in bounded memory.
#[derive(Debug)]
pub struct RateLimiter {
    quotas: RwLock<Arc<RateQuotas>>,
    buckets: BucketTable,
    hasher: RandomState,
    began: Instant,
}

#[derive(Debug, Clone, Copy)]
struct ChargedUnits {
    policy: RatePolicy,
    quota: RateQuota,
    key: u64,
    cost: u32,
    state: BucketState,
}

/// The units charged for a request.
#[derive(Debug, Clone, Default)]
pub struct RateCharge(Vec<ChargedUnits>);

impl RateLimiter {
    /// A limiter with these quotas.
    pub fn new(quotas: RateQuotas) -> Self {
        Self {
            quotas: RwLock::new(Arc::new(quotas)),
            buckets: BucketTable::default(),
            hasher: RandomState::new(),
            began: Instant::now(),
        }
    }

    /// Replaces the quotas and resets all counters.
    pub fn replace(&self, quotas: RateQuotas) {
        *self.quotas.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(quotas);
        self.buckets.clear();
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Charges units to each of these quotas for a request from this address. If one is exhausted,
    /// charges none and returns the response with the retry delay.
    pub fn charge(
        &self,
        from: IpAddr,
        quotas: &[(RatePolicy, RatedClient<'_>)],
        cost: u32,
    ) -> Result<RateCharge, Problem> {
        let set = Arc::clone(&self.quotas.read().unwrap_or_else(PoisonError::into_inner));
        let mut charge = RateCharge::default();
        if (set.exempt)(from) {
            return Ok(charge);
        }
        let now = self.now();
        for (policy, client) in quotas {
            let Some(quota) = set.quota(*policy) else { continue };
            let client = match client {
                RatedClient::Address(ip) => RatedClient::Address(client_network(*ip)),
                token => *token,
            };
            let key = self.hasher.hash_one((policy, client));
            let (policy, taken) = (*policy, self.buckets.take_units(key, quota, cost, now));
            match taken {
                Ok(state) => charge.0.push(ChargedUnits { policy, quota, key, cost, state }),
                Err(state) => {
                    self.give_back(&charge);
                    metrics::counter!("ibi_rate_limited_total", "policy" => policy.name()).increment(1);
                    return Err(quota_exceeded_problem(ChargedUnits { policy, quota, key, cost, state }));
                }
            }
        }
        Ok(charge)
    }

    /// Refunds a charge: the request did not cost what it was charged for.
    pub fn give_back(&self, charge: &RateCharge) {
        for ChargedUnits { quota, key, cost, .. } in &charge.0 {
            self.buckets.give_back(*key, *quota, *cost);
        }
    }
}

impl RateCharge {
    /// Adds the remaining quota to the response headers.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        for (name, value) in RateFields::headers_of(&self.0) {
            headers.insert(name, value);
        }
    }
}

/// The response to a client that exceeded a quota.
fn quota_exceeded_problem(exceeded: ChargedUnits) -> Problem {
    let ChargedUnits { policy, quota, cost, state, .. } = exceeded;
    let detail = if cost > quota.count {
        format!("{cost} units at once exceed the quota `{}` ({quota})", policy.name())
    } else {
        format!("the quota `{}` is used up ({quota}): retry later", policy.name())
    };
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests", detail)
        .with_retry(whole_seconds(state.retry), RateFields::headers_of(&[exceeded]).collect())
}

/// Seconds, rounded up; at least one.
fn whole_seconds(nanos: u64) -> u32 {
    u32::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(u32::MAX).max(1)
}

/// The values of `RateLimit-Policy` and `RateLimit`.
struct RateFields {
    policy: String,
    limit: String,
}

impl RateFields {
    fn of(taken: &[ChargedUnits]) -> Option<Self> {
        if taken.is_empty() {
            return None;
        }
        let list = |item: fn(&ChargedUnits) -> String| taken.iter().map(item).collect::<Vec<_>>().join(", ");
        let policy = |taken: &ChargedUnits| {
            format!("\"{}\";q={};w={}", taken.policy.name(), taken.quota.count, taken.quota.window.as_secs())
        };
        let limit = |taken: &ChargedUnits| {
            format!(
                "\"{}\";r={};t={}",
                taken.policy.name(),
                taken.state.left,
                whole_seconds(taken.state.full)
            )
        };
        Some(Self { policy: list(policy), limit: list(limit) })
    }

    fn headers_of(taken: &[ChargedUnits]) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        Self::of(taken).into_iter().flat_map(Self::headers)
    }

    fn headers(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let both = [(RATELIMIT_POLICY, self.policy), (RATELIMIT, self.limit)];
        both.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::from_str(&text).ok()?)))
    }
}

/// The bearer secret of a request, valid or not.
pub fn bearer_secret(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    given.split_once(' ').map(|(_, secret)| secret.trim())
}

#[cfg(test)]
mod tests;
