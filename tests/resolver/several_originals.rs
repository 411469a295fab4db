//! Two Archives that claim one original (clauses 4.2 step 3 and 4, and 4.3).

use serde_json::{Value, json};

use super::outcomes::told;
use super::{Folder, Resolver, figure, follow, location, until};

#[test]
fn an_alert_is_raised_listed_counted_and_resolved_by_hand() {
    let [a, b] = [Folder::new(), Folder::new()];
    let required = a.deposit(&[(b"a.txt", b"one")], &[]);
    let other = a.deposit(&[(b"a.txt", b"two")], &[]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archives = [resolver.on_line(&a), resolver.on_line(&b)];
    let original = format!("/{required}?ibiurl.requireditemstatus=Original");
    assert_eq!(follow(&server.get(&original)).body, b"one");
    assert_eq!(resolver.json("alerts", &[]), [Value::Null; 0]);
    b.put(&[(b"a.txt", b"one")], &["--label", &required, "--original"]);
    b.put(&[(b"a.txt", b"two")], &["--label", &other, "--original"]);

    // Required: no redirect.
    let (told, text) = told(&server, &original, 409, ["Several originals", "Vários originais"]);
    assert_eq!(told["type"], "urn:ibi:problem:several-originals");
    let mut claims: Vec<String> = serde_json::from_value(told["claims"].clone()).unwrap();
    claims.sort();
    let mut both = [a.service.clone(), b.service.clone()];
    both.sort();
    assert_eq!(claims, both);
    assert!(both.iter().all(|service| text.contains(service)), "{text}");

    // Not required: the client is redirected at once, and the same alert is raised.
    location(&server.get(&format!("/{other}")));
    until("both are alerted", || resolver.json("alerts", &[]).len() == 2);
    let alerts = resolver.json("alerts", &[]);
    for (item, folder) in [(&required, &a), (&other, &a)] {
        let alert = alerts.iter().find(|alert| alert["item"] == **item).unwrap();
        let claims = alert["claims"].as_array().unwrap();
        assert_eq!(claims.len(), 2);
        let claim = claims.iter().find(|claim| claim["archive"] == folder.service).unwrap();
        assert_eq!(claim["url"], format!("http://{}/col/{item}/doc/a.txt", archives[0].at));
        assert!(
            claim["timestamp"].is_string() && claim["seen"].is_string() && alert["first_seen"].is_string()
        );
        assert_eq!(alert["resolved"], Value::Null);
    }
    let listed = resolver.run("alerts", &[]);
    assert!(
        listed.stdout.contains(&format!("{} claims the original at http://{}/", a.service, archives[0].at))
    );
    // Alerts survive a restart, and are a metric from the start on.
    drop(server);
    let server = resolver.serve();
    until("it is a figure", || figure(&server, "ibi_alerts_open") == "2");

    // Resolved by the operator: closed, with who and why.
    let id = alerts.iter().find(|alert| alert["item"] == *required).unwrap()["id"].to_string();
    let ended =
        resolver.json("alerts", &["--resolve", &id, "--note", "a mistake in Brasília"]).pop().unwrap();
    assert_eq!(ended["resolved"]["note"], "a mistake in Brasília");
    let open = resolver.json("alerts", &[]);
    assert_eq!(open.iter().map(|alert| &alert["item"]).collect::<Vec<_>>(), [&json!(other)]);
    assert_eq!(resolver.json("alerts", &["--all"]).len(), 2);
    // The claims persist: the next request that requires the Original raises a new alert. Without
    // one of them, it is found.
    assert_eq!(server.get(&original).status, 409);
    assert_eq!(b.archive("remove", &[&required, "--reason", "a mistake", "--yes"]).status, 0);
    assert_eq!(follow(&server.get(&original)).body, b"one");
}
