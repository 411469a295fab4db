//! The API of a resolver, with a token and without.

use serde_json::{Value, json};

use super::scripted::{KEY, Scripted};
use super::{Folder, Resolver, follow, location, until};

#[test]
fn an_operator_registers_retires_exports_and_imports() {
    let [a, b] = [Resolver::new(), Resolver::new()];
    let token = a.token();
    let server = a.serve();
    let folder = Folder::new();
    let item = folder.deposit(&[(b"a.txt", b"one")], &[]);
    // Without a token, or with an unknown one: who is registered, and where an item is.
    let register = json!({ "service": folder.service }).to_string();
    let retire = register.clone();
    let closed: [(&str, &str, &str); 7] = [
        ("POST", "/archives", &register),
        ("POST", "/archives/retire", &retire),
        ("GET", "/alerts", ""),
        ("GET", "/alerts/1", ""),
        ("POST", "/alerts/1/resolve", "{\"note\": \"x\"}"),
        ("GET", "/registry", ""),
        ("PUT", "/registry", "ibi registry, format 1\n"),
    ];
    for (method, path, body) in closed {
        for wrong in ["", "ibi_0000000000000000000000000000000000000000000000000000000000000000", "nonsense"]
        {
            let reply = server.api(wrong, method, path, body.as_bytes());
            assert_eq!(reply.problem(), 401, "{method} {path}: {}", reply.text());
            assert!(
                !wrong.is_empty() || reply.text().contains("ibi resolver token create"),
                "{}",
                reply.text()
            );
        }
    }
    assert_eq!(server.api("", "GET", "/archives", b"").json(), json!({ "archives": [] }));

    let made = server.api(&token, "POST", "/archives", register.as_bytes());
    assert_eq!(made.status, 201);
    let key = made.json()["key"].as_str().unwrap().to_owned();
    std::fs::write(folder.place.path().join("key"), &key).unwrap();
    let archive = a.on_line(&folder);
    let listed = server.api("", "GET", "/archives", b"").json();
    assert_eq!(
        (&listed["archives"][0]["standing"], &listed["archives"][0]["key"]),
        (&"online".into(), &Value::Null)
    );
    assert_eq!(follow(&server.get(&format!("/{item}"))).body, b"one");

    // Resolved without a redirect.
    let encoded = item.replace('/', "%2F");
    let resolved = server.api("", "GET", &format!("/resolve?url={encoded}%21&explain=true"), b"").json();
    let to = format!("http://{}/col/{item}/doc/a.txt", archive.at);
    assert_eq!((&resolved["outcome"]["status"], &resolved["outcome"]["location"]), (&302.into(), &to.into()));
    assert_eq!(resolved["explanation"]["rounds"][0]["question"], format!("{item}!"));
    let resolved = server.api("", "GET", &format!("/resolve?url=/{encoded}/none.txt"), b"").json();
    assert_eq!((&resolved["outcome"]["status"], &resolved["explanation"]), (&404.into(), &Value::Null));
    assert_eq!(server.api("", "GET", "/resolve", b"").problem(), 400);
    assert_eq!(server.api("", "GET", &format!("/resolve?url={encoded}!!"), b"").problem(), 400);

    // Requests that do not match the description.
    for (method, path, body, status) in [
        ("POST", "/archives", "{", 400),
        ("POST", "/archives", "{}", 422),
        ("POST", "/archives", "{\"service\": \"nonsense\"}", 422),
        ("POST", "/archives", "{\"service\": \"LK47B6W/362SFKH\", \"key\": \"12\"}", 422),
        ("POST", "/archives", "{\"service\": \"LK47B6W/362SFKH\", \"hosts\": [\"http://x/\"]}", 422),
        ("POST", "/archives", "{\"service\": \"LK47B6W/362SFKH\", \"colour\": \"red\"}", 422),
        ("POST", "/archives/retire", "{\"service\": \"LK47B6W/362SFKH\"}", 404),
        ("GET", "/alerts/7", "", 404),
        ("GET", "/alerts/seven", "", 404),
        ("POST", "/alerts/7/resolve", "{\"note\": \"x\"}", 404),
        ("POST", "/alerts/7/resolve", "{\"note\": \" \"}", 422),
        ("PUT", "/registry", "nonsense", 422),
        ("DELETE", "/archives", "", 405),
        ("GET", "/nothing", "", 404),
    ] {
        let reply = server.api(&token, method, path, body.as_bytes());
        assert_eq!(reply.problem(), status, "{method} {path} {body}: {}", reply.text());
    }

    let text = server.api(&token, "GET", "/registry", b"");
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(text.text(), a.run("export", &[]).stdout);
    let other = b.serve();
    let imported = other.api(&b.token(), "PUT", "/registry", &text.body);
    assert_eq!(imported.json(), json!({ "added": 1, "replaced": 0, "kept": 0 }));
    assert_eq!(
        follow(&other.get(&format!("/{item}"))).body,
        b"one",
        "it was online there, and is asked here"
    );

    let retired = server.api(&token, "POST", "/archives/retire", retire.as_bytes());
    assert_eq!((retired.status, &retired.json()["standing"]), (200, &"retired".into()));
    assert_eq!(server.get(&format!("/{item}")).status, 404, "at once");
    // A revoked token is refused.
    let id = a.json("token list", &[])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(a.run("token revoke", &[&id]).status, 0);
    until("it is taken back", || server.api(&token, "GET", "/alerts", b"").status == 401);
}

#[test]
fn an_operator_looks_into_alerts_and_ends_them() {
    const IBI: &str = "sid.inpe.br/mtc-m18@80/2009/07.21.14.43";
    let claimants = ["sid.inpe.br/mtc-m18@80/2008/03.17.15.17", "sid.inpe.br/mtc-m19/2013/09.04.12.27.57"];
    let resolver = Resolver::new();
    let token = resolver.token();
    let server = resolver.serve();
    let archives = claimants.map(|service| Scripted::with(service, IBI, "/a"));
    archives.iter().for_each(|archive| archive.come(&resolver));
    assert_eq!(server.api(&token, "GET", "/alerts", b"").json(), json!({ "alerts": [] }));
    let url = format!("/{IBI}?ibiurl.requireditemstatus=Original");
    assert_eq!(server.get(&url).status, 409);
    let alerts = server.api(&token, "GET", "/alerts", b"").json();
    let alert = &alerts["alerts"][0];
    assert_eq!((alert["claims"].as_array().unwrap().len(), &alert["times"]), (2, &1.into()), "{alert}");
    let path = format!("/alerts/{}", alert["id"]);
    assert_eq!(server.api(&token, "GET", &path, b"").json(), *alert);
    let ended =
        server.api(&token, "POST", &format!("{path}/resolve"), "{\"note\": \"um engano\"}".as_bytes());
    assert_eq!(ended.status, 200);
    assert_eq!(
        (&ended.json()["resolved"]["by"], &ended.json()["resolved"]["note"]),
        (&"Ana".into(), &"um engano".into())
    );
    assert_eq!(server.api(&token, "GET", "/alerts", b"").json(), json!({ "alerts": [] }));
    assert_eq!(
        server.api(&token, "GET", "/alerts?all=true", b"").json()["alerts"].as_array().unwrap().len(),
        1
    );
    assert_eq!(
        archives[0].tell(&resolver, "exclusionRequest", KEY).text().trim_end(),
        "status.archive excluded"
    );
    assert!(location(&server.get(&url)).contains(&archives[1].at), "one claims it");
}

/// Metrics, health checks and the description are open to everybody.
#[test]
fn health_figures_and_description_are_there() {
    let resolver = Resolver::new();
    let server = resolver.serve();
    assert_eq!(server.get("/livez").text(), "alive\n");
    assert_eq!(server.get("/readyz").text(), "ready\n");
    server.get("/8JMKD3MGP8W/34PGRBS");
    let figures = server.get("/metrics");
    assert_eq!(figures.header("content-type"), "text/plain; version=0.0.4");
    assert!(figures.text().contains("ibi_resolutions_total{status=\"404\"} 1"), "{}", figures.text());
    let described = server.api("", "GET", "/resolver.json", b"").json();
    assert!(described["openapi"].as_str().unwrap().starts_with("3."));
    assert_eq!(server.api("", "GET", "/openapi.json", b"").json(), described);
    let home = server.get("/");
    assert_eq!((home.status, home.header("content-type")), (200, "text/html; charset=utf-8"));
    // The text of the form's field is looked up here.
    let asked = server.get("/?ibi=%20//8JMKD3MGP8W/34PGRBS%0d%0aX-Injected:%20y");
    assert_eq!((asked.status, asked.header("location")), (303, "/8JMKD3MGP8W/34PGRBSX-Injected:y"));
    assert_eq!(asked.header("x-injected"), "");
}
