//! What operators are told of the location index, by the command and the API.

use serde_json::Value;

use super::scripted::Scripted;
use super::{Resolver, figure, until};
use crate::online::Folder;

const OTHER: &str = "other.test/archive/2001/01.01.01.01";

fn of<'a>(status: &'a Value, service: &str) -> &'a Value {
    let mut archives = status["archives"].as_array().unwrap().iter();
    archives.find(|archive| archive["service"] == service).unwrap()
}

#[test]
fn the_command_and_the_api_show_what_the_index_knows() {
    let resolver = Resolver::new();
    let token = resolver.token();
    let before = resolver.json("index", &[]).pop().unwrap();
    assert_eq!((before["labels"].as_u64(), before["archives"].as_array().unwrap().len()), (Some(0), 0));
    let server = resolver.serve();
    let folder = Folder::new();
    let mut archive = resolver.on_line(&folder);
    folder.deposit(&[(b"a.txt", b"1")], &[]);
    folder.deposit(&[(b"b.txt", b"2")], &[]);
    let other = Scripted::new(OTHER, |_, _| String::new());
    other.come(&resolver);
    let shown = || resolver.json("index", &[]).pop().unwrap();
    // The Archive's service is an item, too.
    until("all items are in the index", || {
        let status = shown();
        status["archives"].as_array().unwrap().len() == 2 && of(&status, &folder.service)["items"] == 3
    });
    let status = shown();
    let one = of(&status, &folder.service);
    assert_eq!(
        (&one["followed"], &one["current"], &one["error"]),
        (&true.into(), &true.into(), &Value::Null)
    );
    assert!(one["age_seconds"].as_f64().unwrap() < 3.0, "{one:#}");
    let sequence = one["sequence"].as_u64().unwrap();
    assert!(one["position"].as_str().unwrap().starts_with(&format!("{sequence}-")), "{one:#}");
    assert!(one["labels"].as_u64().unwrap() >= 4 && one["bytes"].as_u64().unwrap() > 400, "{one:#}");
    assert_eq!((&status["items"], &status["labels"]), (&one["items"], &one["labels"]));
    assert!(status["bytes"].as_u64() > one["bytes"].as_u64(), "{status:#}");
    let asked = of(&status, OTHER);
    assert_eq!(
        (&asked["followed"], &asked["current"], &asked["position"]),
        (&false.into(), &false.into(), &Value::Null)
    );
    // The API says the same, to operators.
    assert_eq!(server.api("", "GET", "/index", b"").problem(), 401);
    let told = server.api(&token, "GET", "/index", b"").json();
    assert_eq!(of(&told, &folder.service)["labels"], one["labels"]);
    // So does the table.
    let table = resolver.run("index", &[]).stdout;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!((rows.len(), rows[2][0], rows[2][5]), (3, "total", "3"), "{table}");
    assert!(rows.iter().all(|row| row.len() == 8), "{table}");
    assert!(rows.iter().any(|row| row[..2] == [OTHER, "asked"]), "{table}");
    let breakers = resolver.json("archives", &[]);
    assert!(breakers.iter().all(|archive| archive["breaker"] == "closed"), "{breakers:#?}");
    // The feed fails: why, and how old the index is.
    archive.signal("-KILL");
    archive.end();
    until("the failure is told", || {
        let status = shown();
        let one = of(&status, &folder.service);
        one["current"] == false && one["error"].is_string() && one["age_seconds"].as_f64() > Some(1.0)
    });
    let lag = format!("ibi_index_feed_lag_seconds{{archive=\"{}\"}}", folder.service);
    until("the lag grows", || figure(&server, &lag).parse::<f64>().is_ok_and(|lag| lag > 1.0));
    // Without a server, what is on disk.
    server.stop();
    until("the server's last word is too old", || shown()["archives"][0]["age_seconds"].is_null());
    let status = shown();
    let stored = of(&status, &folder.service);
    assert_eq!((&stored["labels"], &stored["current"]), (&one["labels"], &false.into()));
    let breakers = resolver.json("archives", &[]);
    assert!(breakers.iter().all(|archive| archive["breaker"].is_null()), "{breakers:#?}");
}
