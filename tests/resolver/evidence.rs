//! The evidence in an alert (4.2 step 3; 3.3): who deposited what and when, and how to contact the
//! administrators.

use serde_json::Value;

use super::{Folder, Resolver, until};

#[test]
fn an_alert_carries_the_evidence_that_archives_give() {
    let [a, b] = [Folder::new(), Folder::new()];
    let item = a.deposit(&[(b"a.txt", b"one")], &[]);
    b.put(&[(b"a.txt", b"one")], &["--label", &item, "--original"]);
    let resolver = Resolver::new();
    let server = resolver.serve();
    let _archives = [resolver.on_line(&a), resolver.on_line(&b)];
    assert_eq!(server.get(&format!("/{item}?ibiurl.requireditemstatus=Original")).status, 409);
    let claims = || resolver.json("alerts", &[]).pop().unwrap()["claims"].as_array().unwrap().clone();
    until("both have told", || claims().iter().all(|claim| claim["epoch"].is_u64()));
    let alert = resolver.json("alerts", &[]).pop().unwrap();
    let prefix = alert["prefix"].as_str().unwrap();
    assert!(item.starts_with(prefix), "{prefix}");
    let claim = |folder: &Folder| -> Value {
        claims().into_iter().find(|claim| claim["archive"] == folder.service).unwrap()
    };
    assert_eq!((&claim(&a)["own_prefix"], &claim(&b)["own_prefix"]), (&true.into(), &false.into()));
    for folder in [&a, &b] {
        let claim = claim(folder);
        assert!(claim["depositor"].is_string() && claim["deposited"].is_string(), "{claim}");
        let versions = claim["versions"].as_array().unwrap();
        assert_eq!((versions.len(), &versions[0]["version"]), (1, &1.into()));
        assert_eq!(versions[0]["inventory"].as_str().unwrap().len(), 128);
        assert!(claim["contact"]["email"].as_str().unwrap().contains('@'), "{claim}");
    }
    let text = resolver.run("alerts", &[]).stdout;
    for words in ["label minted under ", "deposited ", "epoch 1", "v1 ", "administrator "] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The page for a client that required the Original shows the evidence, but no contact
    // addresses.
    let page = server.get_with(
        &format!("/{item}?ibiurl.requireditemstatus=Original"),
        "Accept: text/html\r\nAccept-Language: pt\r\n",
    );
    let page = page.text();
    assert!(page.contains("rótulo gerado com o seu próprio prefixo") && page.contains("SHA-512"), "{page}");
    assert!(!page.contains('@'), "{page}");
    let over_api = server.api(&resolver.token(), "GET", "/alerts", b"").json();
    assert_eq!(without_seen(&over_api["alerts"][0]["claims"]), without_seen(&alert["claims"]));
}

/// The claims without the time when each was last seen, which every query changes.
fn without_seen(claims: &Value) -> Vec<Value> {
    let mut claims = claims.as_array().unwrap().clone();
    for claim in &mut claims {
        assert!(claim.as_object_mut().unwrap().remove("seen").is_some(), "{claim}");
    }
    claims
}
