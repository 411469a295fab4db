//! Items without files, and with a target URL, through a resolver (clauses 2.2, 4.2).

use super::{Folder, Resolver, follow, location, until};
use crate::online::client::ask;
use crate::online::rep;

/// 003 §6.1: the pairs of the persistent URL reach the Web service, by way of the item's Archive.
#[test]
fn clause_2_2_a_persistent_url_leads_to_the_target_url_of_an_item() {
    let folder = Folder::new();
    let target = "http://maps.test/wms?service=WMS";
    let service = folder.archive("deposit", &["--url", target, "--dc", "title=Maps"]).json().remove(0);
    let record = folder.archive("deposit", &["--record", "--dc", "title=A globe"]).json().remove(0);
    let (label, metadata) = (rep(&service), service["metadata"]["rep"].as_str().unwrap().to_owned());
    let resolver = Resolver::new();
    let server = resolver.serve();
    let archive = resolver.on_line(&folder);
    let asked = format!("/{label}?layer=roads%2Brails&ibiurl.requireditemstatus=Original&x");
    let sent = server.get(&asked);
    let to = format!("http://{}/col/{label}/doc/?layer=roads%2Brails&x", archive.at);
    assert_eq!(location(&sent), to, "4.2 step 2: on the Archive's own host");
    let (at, path) = to.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let led = ask(at, "GET", &format!("/{path}"), "", b"");
    assert_eq!(led.status, 302);
    assert_eq!(led.header("location"), format!("{target}&layer=roads%2Brails&x"));
    // A record's persistent URL opens its metadata.
    assert!(follow(&server.get(&format!("/{}", rep(&record)))).text().contains("A globe"));
    // Clause 3.5: acknowledgments are counted by content type.
    assert!(follow(&server.get(&format!("/{label}:"))).text().contains("Maps"));
    let resolutions = |label: &str| {
        let path = format!("/api/v1/items/{label}/statistics");
        let totals = archive.get(&path).json()["totals"]["resolutions"].clone();
        totals.as_object().unwrap().values().filter_map(serde_json::Value::as_u64).sum::<u64>()
    };
    until("both are counted, apart", || resolutions(&label) == 1 && resolutions(&metadata) == 1);
    // Clause 2: the Archive redirects requests for items that it does not hold to its resolver.
    let unknown = "/unknown.test/x/2020/01.01.01.01!";
    let away = archive.get(unknown);
    let there = format!("http://{}{unknown}", resolver.at);
    assert_eq!((away.status, away.header("location")), (302, there.as_str()));
    assert_eq!(server.get(unknown).status, 404);
}
