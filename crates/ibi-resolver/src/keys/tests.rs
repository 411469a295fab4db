use super::*;

const A: &str = "a.br/a/2009/02.16.17.46";
const B: &str = "a.br/b/2009/02.16.17.46";

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn key(text: &str) -> RegistrationKey {
    text.parse().unwrap()
}

/// Cheaper than the hash used in production, so that tests are fast.
pub(crate) fn cheap_hash(key: &str) -> String {
    let params = Params::new(8, 1, 1, None).unwrap();
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon2.hash_password(key.as_bytes()).unwrap().to_string()
}

#[test]
fn keys_that_are_made_have_32_digits_and_differ() {
    let (one, other) = (random().unwrap(), random().unwrap());
    for key in [&one, &other] {
        assert!(key.reveal().len() == 32 && key.reveal().bytes().all(|c| c.is_ascii_digit()));
    }
    assert_ne!(one.reveal(), other.reveal());
}

#[test]
fn what_is_kept_is_an_argon2id_digest_with_a_salt() {
    let key = key("1234567890");
    let (one, other) = (hash(&key).unwrap(), hash(&key).unwrap());
    assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$") && !one.contains("1234567890"));
    assert_ne!(one, other);
    assert!(is_hash(&one) && verify_key(&key, &one) && !verify_key(&self::key("1234567891"), &one));
    assert!(!is_hash("") && !is_hash("1234567890") && !is_hash("$argon2id$v=19$m=19456,t=2,p=1"));
    let cost = |hash: &str| hash.rsplitn(3, '$').last().unwrap().to_owned();
    assert!(
        is_hash(DUMMY_KEY_HASH) && cost(DUMMY_KEY_HASH) == cost(&one),
        "an unknown Archive costs the same"
    );
    assert!(!verify_key(&key, "") && !verify_key(&key, "1234567890"));
}

#[tokio::test(start_paused = true)]
async fn k2_a_right_key_is_accepted_and_recognised() {
    let keys = KeyVerifier::new().unwrap();
    let client = ip("192.0.2.1");
    let hash: Arc<str> = cheap_hash("1234567890").into();
    let known = || Some((ArchiveId(1), hash.clone()));
    assert_eq!(keys.check(A, known(), &key("1234567891"), client).await, Err(KeyRejection::Wrong));
    assert_eq!(keys.check(A, None, &key("1234567890"), client).await, Err(KeyRejection::Wrong));
    assert_eq!(keys.check(A, known(), &key("1234567890"), client).await, Ok(()));
    // A verified key is recognised: while all hash slots are taken, only it is accepted.
    let all = keys.waiting.acquire_many((MAX_CONCURRENT_HASHES + MAX_WAITING_HASHES) as u32).await.unwrap();
    assert_eq!(keys.check(A, known(), &key("1234567890"), client).await, Ok(()));
    assert_eq!(keys.check(A, known(), &key("1234567891"), client).await, Err(KeyRejection::Busy));
    let other = Some((ArchiveId(1), Arc::from(cheap_hash("5555555555"))));
    assert_eq!(keys.check(A, other, &key("1234567890"), client).await, Err(KeyRejection::Busy));
    tokio::time::advance(VERIFIED_KEY_LIFETIME).await;
    assert_eq!(keys.check(A, known(), &key("1234567890"), client).await, Err(KeyRejection::Busy));
    drop(all);
    assert_eq!(keys.check(A, known(), &key("1234567890"), client).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn k2_guesses_at_the_same_time_are_counted() {
    let keys = Arc::new(KeyVerifier::new().unwrap());
    let hash: Arc<str> = cheap_hash("1234567890").into();
    let guesses: Vec<_> = (0..40)
        .map(|number| {
            let (keys, hash) = (keys.clone(), hash.clone());
            let key = key(&format!("999999{number:04}"));
            tokio::spawn(
                async move { keys.check(A, Some((ArchiveId(1), hash)), &key, ip("192.0.2.1")).await },
            )
        })
        .collect();
    let (mut wrong, mut busy) = (0, 0);
    for guess in guesses {
        match guess.await.unwrap().unwrap_err() {
            KeyRejection::Wrong => wrong += 1,
            KeyRejection::Busy => busy += 1,
            KeyRejection::Later(_) => {}
        }
    }
    assert!((5..=6).contains(&wrong), "{wrong}");
    assert!(busy > 0);
}

fn fail(limits: &mut KeyAttemptLimits, service: &str, client: &str, times: u32, now: Instant) {
    (0..times).for_each(|_| limits.failed(service, ip(client), now));
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn k2_five_failures_are_free_then_the_wait_doubles_up_to_a_quarter_of_an_hour() {
    let mut limits = KeyAttemptLimits::default();
    let mut now = Instant::now();
    let client = "192.0.2.1";
    fail(&mut limits, A, client, 4, now);
    assert_eq!(limits.wait(A, ip(client), now), None);
    for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900] {
        fail(&mut limits, A, client, 1, now);
        let wait = limits.wait(A, ip(client), now);
        assert_eq!(wait, Some(seconds * SECOND));
        // The limit applies to the client, whatever the Archive.
        assert_eq!(limits.wait(B, ip(client), now), wait);
        now += seconds * SECOND;
        assert_eq!(limits.wait(A, ip(client), now), None);
    }
    // Then the failures are forgotten.
    now += 900 * SECOND;
    fail(&mut limits, A, client, 4, now);
    assert_eq!(limits.wait(A, ip(client), now), None);
}

#[tokio::test]
async fn k2_clients_of_ipv6_are_networks_and_mapped_ones_are_ipv4() {
    let mut limits = KeyAttemptLimits::default();
    let now = Instant::now();
    (0..5).for_each(|n| limits.failed(A, ip(&format!("2001:db8:1:2::{n}")), now));
    assert_eq!(limits.wait(A, ip("2001:db8:1:2:ffff::1"), now), Some(SECOND));
    assert_eq!(limits.wait(A, ip("2001:db8:1:3::1"), now), None);
    fail(&mut limits, B, "::ffff:192.0.2.1", 5, now);
    assert_eq!(limits.wait(B, ip("192.0.2.1"), now), Some(SECOND));
}

#[tokio::test]
async fn k2_guessing_in_the_name_of_an_archive_does_not_keep_it_out() {
    let mut limits = KeyAttemptLimits::default();
    let now = Instant::now();
    limits.succeeded(A, ip("198.51.100.1"));
    (0..200).for_each(|n| limits.failed(A, ip(&format!("192.0.2.{n}")), now));
    // A client that guessed once gets the delay of all guesses together, but only for this Archive.
    assert_eq!(limits.wait(A, ip("192.0.2.7"), now), Some(900 * SECOND));
    assert_eq!(limits.wait(B, ip("192.0.2.7"), now), None);
    // A first-time client gets one try; one that succeeded has its own full allowance.
    assert_eq!(limits.wait(A, ip("198.51.100.2"), now), None);
    fail(&mut limits, A, "198.51.100.2", 1, now);
    assert_eq!(limits.wait(A, ip("198.51.100.2"), now), Some(900 * SECOND));
    fail(&mut limits, A, "198.51.100.1", 4, now);
    assert_eq!(limits.wait(A, ip("198.51.100.1"), now), None);
    fail(&mut limits, A, "198.51.100.1", 1, now);
    assert_eq!(limits.wait(A, ip("198.51.100.1"), now), Some(SECOND));
    // A valid key does not help in guessing another.
    limits.succeeded(B, ip("192.0.2.7"));
    assert_eq!(limits.wait(A, ip("192.0.2.7"), now), Some(900 * SECOND));
}

#[tokio::test]
async fn k2_the_memory_of_failures_is_bounded() {
    let mut limits = KeyAttemptLimits::default();
    let start = Instant::now();
    for n in 0..25_000_u32 {
        let now = start + n * Duration::from_micros(1);
        limits.failed(&format!("service {n}"), IpAddr::V4((n + (10 << 24)).into()), now);
    }
    let (clients, archives) = limits.remembered();
    assert!(
        (9_000..=10_000).contains(&clients) && (9_000..=10_000).contains(&archives),
        "{clients} {archives}"
    );
}
