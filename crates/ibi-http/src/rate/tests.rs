use proptest::prelude::*;

use super::*;

const TEST_CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn limiter(policy: RatePolicy, quota: &str) -> RateLimiter {
    let mut quotas = RateQuotas::default();
    quotas.set(policy, Some(quota.parse().unwrap()));
    RateLimiter::new(quotas)
}

fn by_address(limiter: &RateLimiter, ip: &str, cost: u32) -> Result<RateCharge, Problem> {
    let ip = ip.parse().unwrap();
    limiter.charge(ip, &[(RatePolicy::ListAddress, RatedClient::Address(ip))], cost)
}

/// A bucket with exact arithmetic, in units times nanoseconds.
struct ExactBucket {
    level: i128,
    updated: u64,
}

proptest! {
    /// The limiter admits exactly what an exact bucket admits, up to rounding. Units given back
    /// count as never taken.
    #[test]
    fn it_agrees_with_an_exact_bucket(
        count in 1_u32..2000,
        seconds in 1_u64..100,
        steps in prop::collection::vec((0_u64..20_000_000_000, 1_u32..40, any::<bool>()), 1..200),
    ) {
        let quota = RateQuota { count, window: Duration::from_secs(seconds) };
        let window = i128::from(seconds) * 1_000_000_000;
        let (table, mut now) = (BucketTable::default(), 0);
        let mut exact = ExactBucket { level: window * i128::from(count), updated: 0 };
        let mut rounding = 0;
        for (pause, cost, back) in steps {
            now += pause;
            let regained = i128::from(now - exact.updated) * i128::from(count);
            exact.level = (exact.level + regained).min(window * i128::from(count));
            exact.updated = now;
            let needed = i128::from(cost) * window;
            let taken = table.take_units(7, quota, cost, now);
            if exact.level >= needed {
                prop_assert!(taken.is_ok(), "{} of {} were available", needed, exact.level);
            }
            match taken {
                Ok(state) => {
                    prop_assert!(exact.level + rounding >= needed);
                    rounding += i128::from(count);
                    if back {
                        table.give_back(7, quota, cost);
                    } else {
                        exact.level -= needed;
                        prop_assert!(i128::from(state.left) <= (exact.level + rounding) / window + 1);
                    }
                }
                Err(state) => {
                    // After the announced delay, the units are available.
                    prop_assert!(state.retry > 0);
                    let after = exact.level + i128::from(state.retry) * i128::from(count);
                    prop_assert!(cost > count || after + rounding + i128::from(count) >= needed);
                }
            }
        }
    }
}

/// The number of remembered clients is bounded, and the heaviest users are remembered longest.
#[test]
fn memory_is_bounded_and_keeps_the_heaviest_users() {
    let (table, quota) = (BucketTable::default(), RateQuota::per_minute(10));
    table.take_units(1, quota, 10, 0).unwrap();
    for number in 2..200_000_u64 {
        let _ = table.take_units(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), quota, 1, 0);
    }
    assert!(table.clients() <= 65_536);
    table.take_units(1, quota, 1, 0).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_followed_by_the_even_rate() {
    let limiter = limiter(RatePolicy::ListAddress, "10/60");
    for _ in 0..10 {
        by_address(&limiter, "192.0.2.1", 1).unwrap();
    }
    let refused = by_address(&limiter, "192.0.2.1", 1).unwrap_err();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    by_address(&limiter, "192.0.2.2", 10).unwrap();
    tokio::time::advance(Duration::from_secs(6)).await;
    by_address(&limiter, "192.0.2.1", 1).unwrap();
    by_address(&limiter, "192.0.2.1", 1).unwrap_err();
    tokio::time::advance(Duration::from_secs(60)).await;
    by_address(&limiter, "192.0.2.1", 10).unwrap();
    by_address(&limiter, "192.0.2.1", 11).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn an_ipv6_network_is_one_client() {
    let limiter = limiter(RatePolicy::ListAddress, "2/60");
    by_address(&limiter, "2001:db8::1", 1).unwrap();
    by_address(&limiter, "2001:db8::ffff:1", 1).unwrap();
    by_address(&limiter, "2001:db8::2", 1).unwrap_err();
    by_address(&limiter, "2001:db8:0:1::2", 1).unwrap();
    by_address(&limiter, "::ffff:192.0.2.1", 2).unwrap();
    by_address(&limiter, "192.0.2.1", 1).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_charged_to_no_quota() {
    let mut quotas = RateQuotas::default();
    quotas.set(RatePolicy::MintToken, Some("5/60".parse().unwrap()));
    quotas.set(RatePolicy::MintAddress, Some("10/60".parse().unwrap()));
    let limiter = RateLimiter::new(quotas);
    let mint = |token: &str, cost| {
        let address = (RatePolicy::MintAddress, RatedClient::Address(TEST_CLIENT));
        limiter.charge(TEST_CLIENT, &[address, (RatePolicy::MintToken, RatedClient::Token(token))], cost)
    };
    mint("a", 5).unwrap();
    for _ in 0..10 {
        mint("a", 1).unwrap_err();
    }
    let charge = mint("b", 5).unwrap();
    mint("c", 1).unwrap_err();
    limiter.give_back(&charge);
    mint("c", 5).unwrap();
}

#[tokio::test(start_paused = true)]
async fn exempt_clients_are_unlimited_and_quotas_can_be_replaced() {
    let mut quotas = RateQuotas::default();
    quotas.set(RatePolicy::ListAddress, Some("1/60".parse().unwrap()));
    quotas.exempt(|ip| ip == TEST_CLIENT);
    let limiter = RateLimiter::new(quotas.clone());
    for _ in 0..100 {
        by_address(&limiter, "192.0.2.1", 1).unwrap();
    }
    by_address(&limiter, "192.0.2.2", 1).unwrap();
    by_address(&limiter, "192.0.2.2", 1).unwrap_err();
    quotas.set(RatePolicy::ListAddress, None);
    limiter.replace(quotas);
    by_address(&limiter, "192.0.2.2", 1_000_000).unwrap();
}

#[tokio::test(start_paused = true)]
async fn headers_report_the_remaining_quota() {
    let limiter = limiter(RatePolicy::ListAddress, "10/60");
    let mut headers = HeaderMap::new();
    by_address(&limiter, "192.0.2.1", 4).unwrap().write_headers(&mut headers);
    assert_eq!(headers["ratelimit-policy"], "\"list-address\";q=10;w=60");
    assert_eq!(headers["ratelimit"], "\"list-address\";r=6;t=24");
    use axum::response::IntoResponse as _;
    let refused = by_address(&limiter, "192.0.2.1", 7).unwrap_err().into_response();
    assert_eq!(refused.headers()["retry-after"], "6");
    assert_eq!(refused.headers()["ratelimit"], "\"list-address\";r=6;t=24");
}

#[test]
fn quotas_are_read_and_printed() {
    for text in ["1/1", "1000/60", "1000000000/86400"] {
        assert_eq!(text.parse::<RateQuota>().unwrap().to_string(), text);
    }
    for text in
        ["", "1", "0/60", "1/0", "1/86401", "1000000001/1", "+1/60", "1/+60", "1/60s", "-1/2", "1/2/3"]
    {
        text.parse::<RateQuota>().unwrap_err();
    }
    for policy in RatePolicy::ALL {
        assert_eq!(policy.name().parse(), Ok(*policy));
    }
    "mint".parse::<RatePolicy>().unwrap_err();
}
