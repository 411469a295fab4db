//! Data and metadata: two clocks (D32), two counts (clause 3.5), one complete record (clause 2.2).

use std::thread;
use std::time::Duration;

use super::client::{Reply, ask};
use super::{Folder, Server, until};

const PERSON: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0\r\n";

fn asked(server: &Server, folder: &Folder, label: &str, more: &str) -> Reply {
    let who = format!("clientinformation.ipaddress=198.51.100.1&parsedibiurl.ibi={label}");
    server.service(folder, &format!("servicesubject=urlRequest&{who}{more}"))
}

/// Waits a second, so that changed timestamps differ.
fn tick() {
    thread::sleep(Duration::from_millis(1100));
}

/// 2.2, 003 Table 7.3: a change of one does not change the other's timestamp.
#[test]
fn d32_data_and_metadata_have_clocks_of_their_own() {
    let folder = Folder::new();
    let label = folder.deposit(&[(b"a.txt", b"first")], &["--dc", "title=First"]);
    let other = folder.deposit(&[(b"b.txt", b"other")], &[]);
    let server = folder.serve();
    let times = || {
        let data = asked(&server, &folder, &label, "").pair("timestamp");
        let verbs = "&parsedibiurl.verblist=GetMetadata";
        let metadata = asked(&server, &folder, &label, verbs).pair("timestamp.metadata");
        (data, metadata)
    };
    let update = |arguments: &[&str]| {
        tick();
        let run = folder.archive("update", &[&[label.as_str()], arguments].concat());
        assert_eq!(run.status, 0, "{}", run.stderr);
        (run.json().pop().unwrap(), times())
    };
    let first = times();
    assert_eq!(first.0, first.1);
    let (told, second) = update(&["--dc", "title=Second"]);
    assert_eq!(second.0, first.0, "the metadata alone");
    assert!(second.1 > first.1);
    assert_eq!(told["data_updated"], first.0.as_str());
    assert_eq!((&told["updated"], told.get("metadata_updated")), (&second.1.as_str().into(), None));
    let file = folder.folder(&[(b"a.txt", b"second")]).display().to_string();
    let (told, third) = update(&[&file]);
    assert_eq!(third.1, second.1, "the files alone");
    assert!(third.0 > second.0);
    assert_eq!(told["metadata_updated"], second.1.as_str());
    // Clause 2.4: a link changes neither.
    let (told, fourth) = update(&["--translation-of", &other]);
    assert_eq!(fourth, third);
    assert!(told["updated"].as_str().unwrap() > third.0.as_str());
    let (_, fifth) = update(&["--language", "pt", "--dc", "title=Third"]);
    assert!(fifth.0 > fourth.0 && fifth.1 == fifth.0, "both");
    // Pages and files have the same dates, and so has a rebuilt index.
    let metadata = told["metadata"]["rep"].as_str().unwrap().to_owned();
    let (_, sixth) = update(&["--dc", "title=Fourth"]);
    let modified = |path: &str| server.get(path).header("last-modified").to_owned();
    assert_ne!(modified(&format!("/col/{metadata}/")), modified(&format!("/col/{label}/doc/a.txt")));
    assert_eq!(modified(&format!("/col/{metadata}/")), modified(&format!("/col/{label}/")));
    assert_eq!(folder.archive("rebuild", &[]).status, 0);
    assert_eq!(times(), sixth);
}

fn total(server: &Server, label: &str, what: &str) -> u64 {
    let statistics = server.api("", "GET", &format!("/items/{label}/statistics"), b"").json();
    statistics["totals"][what]["people"].as_u64().unwrap()
}

/// 003 §6.2, §7.2: an acknowledgment has `ibi` and `contenttype`, so both are counted.
#[test]
fn clause_3_5_data_and_metadata_are_counted_apart() {
    let folder = Folder::new();
    let item = folder.put(&[(b"a.txt", b"a")], &[]);
    let (label, metadata) = (super::rep(&item), item["metadata"]["rep"].as_str().unwrap().to_owned());
    let server = folder.serve();
    let acknowledge = |verbs: &str, relation: &str, times: usize| {
        for _ in 0..times {
            let answer = asked(&server, &folder, &label, verbs);
            let (url, kind) =
                (answer.pair(&format!("url{relation}")), answer.pair(&format!("contenttype{relation}")));
            let query = format!(
                "servicesubject=acknowledgment&clientinformation.ipaddress=198.51.100.1&contenttype={kind}&url={url}\
                 &url.persistent=http://r.test/{label}&urlkey={}",
                answer.pair("urlkey")
            );
            assert_eq!(server.service(&folder, &query).status, 200);
        }
    };
    acknowledge("", "", 3);
    acknowledge("&parsedibiurl.verblist=GetMetadata", ".metadata", 2);
    assert_eq!((total(&server, &label, "resolutions"), total(&server, &metadata, "resolutions")), (3, 2));
    assert_eq!(server.get_with(&format!("/col/{label}/"), PERSON).status, 200);
    assert_eq!(server.get_with(&format!("/col/{label}/doc/a.txt"), PERSON).status, 200);
    assert_eq!((total(&server, &label, "views"), total(&server, &metadata, "views")), (1, 0));
    assert_eq!(server.get_with(&format!("/col/{metadata}/"), PERSON).status, 200);
    assert_eq!((total(&server, &label, "views"), total(&server, &metadata, "views")), (1, 1));
    assert_eq!((total(&server, &label, "downloads"), total(&server, &metadata, "downloads")), (1, 0));
    until("the command tells the same", || {
        let told = |label: &str| folder.archive("stats", &[label]).json().pop().unwrap();
        let (data, of_metadata) = (told(&label), told(&metadata));
        assert_eq!((&data["contenttype"], &of_metadata["contenttype"]), (&"Data".into(), &"Metadata".into()));
        assert_eq!((&data["item"], &of_metadata["item"]), (&label.clone().into(), &metadata.clone().into()));
        data["totals"]["resolutions"]["people"] == 3 && of_metadata["totals"]["resolutions"]["people"] == 2
    });
}

/// 2.2: a harvested record identifies its item, and has no duplicates.
#[test]
fn clause_2_2_oai_dc_is_complete_by_itself_and_the_same_everywhere() {
    let folder = Folder::new();
    let first = folder.deposit(&[(b"a.txt", b"a")], &["--language", "en"]);
    let other = folder.deposit(&[(b"a.txt", b"a")], &["--language", "fr", "--translation-of", &first]);
    let item = folder.put(
        &[(b"a.txt", b"a"), (b"b.pdf", b"b"), (b"c.txt", b"c")],
        &[
            "--dc",
            "title=Um & outro",
            "--dc",
            "format=application/pdf",
            "--dc",
            "identifier=ISBN 1",
            "--language",
            "pt-BR",
            "--translation-of",
            &first,
            "--alias",
            "LK47B6W/362SFKH",
        ],
    );
    let (label, metadata) = (super::rep(&item), item["metadata"]["rep"].as_str().unwrap().to_owned());
    let key = folder.place.path().join("key");
    std::fs::write(&key, "8675309867-5309867530").unwrap();
    // With the label of its service, or without: persistent URLs begin with the resolver's address.
    let resolver = ["--resolver", "http://r.test:1/J8LNKB5R7W/3FUQHC5", "--key-file"];
    let server = folder.serve_with(&[&resolver[..], &[&key.display().to_string()]].concat());
    let record = server.get(&format!("/col/{metadata}/oai_dc")).text();
    let values = |element: &str| -> Vec<String> {
        let open = format!("<dc:{element}>");
        record.split(&open).skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()).collect()
    };
    let mut identifiers = vec!["ISBN 1".to_owned(), label.clone()];
    identifiers.extend(["LK47B6W/362SFKH".to_owned(), format!("http://r.test:1/{label}")]);
    assert_eq!(values("identifier"), identifiers);
    assert_eq!(values("language"), ["pt-BR"]);
    assert_eq!(values("format"), ["application/pdf", "text/plain"]);
    assert_eq!(values("date"), [item["created"].as_str().unwrap()]);
    let mut related = [format!("http://r.test:1/{first}"), format!("http://r.test:1/{other}")];
    let mut found = values("relation");
    related.sort();
    found.sort();
    assert_eq!(found, related);
    // The same bytes at every address; `:(oai_dc)` and the page lead there.
    for path in [format!("/col/{label}/oai_dc"), format!("/api/v1/items/{label}/oai_dc")] {
        assert_eq!(server.get(&path).text(), record, "{path}");
    }
    let led = server.get(&format!("/{label}:(oai_dc)"));
    assert_eq!((led.status, led.header("location")), (302, format!("/col/{metadata}/oai_dc").as_str()));
    assert!(server.get(&format!("/col/{label}/")).text().contains(&format!("/col/{metadata}/oai_dc")));
    // Stored metadata are what the depositor wrote.
    let stored = folder.data().join("tree").join(&label).join("v1/content/metadata/oai_dc.xml");
    assert!(!std::fs::read_to_string(stored).unwrap().contains(&label));
    // A value given by the depositor, in any spelling, is not added again.
    let again = record.matches("<dc:").count();
    let mut said: Vec<String> = Vec::new();
    for element in ["identifier", "language", "format", "date", "relation"] {
        said.extend(values(element).into_iter().map(|value| format!("--dc={element}={value}")));
    }
    let said: Vec<&str> = [label.as_str()].into_iter().chain(said.iter().map(String::as_str)).collect();
    assert_eq!(folder.archive("update", &said).status, 0);
    let told = server.get(&format!("/col/{metadata}/oai_dc")).text();
    let updates = told.matches("<dc:date>").count() - 1;
    assert_eq!(told.matches("<dc:").count() - updates, again, "{told}");
}

/// RFC 9110 8.6: `Content-Length` of a HEAD response is that of the body.
#[test]
fn a_304_tells_no_wrong_length() {
    let folder = Folder::new();
    let label = folder.deposit(&[(b"a.txt", b"0123456789")], &[]);
    let server = folder.serve();
    let path = format!("/col/{label}/doc/a.txt");
    let tag = server.get(&path).header("etag").to_owned();
    for method in ["HEAD", "GET"] {
        let reply = ask(&server.at, method, &path, &format!("If-None-Match: {tag}\r\n"), b"");
        assert_eq!((reply.status, reply.body.len()), (304, 0));
        assert_ne!(reply.header("content-length"), "0", "{method}");
    }
}

/// D38, 003 §7.2: the whole list of Example 7.2.
#[test]
fn d38_the_whole_list_of_properties() {
    let folder = Folder::new();
    let first = folder.deposit(&[(b"a.pdf", b"a")], &["--language", "en"]);
    let second = folder.deposit(&[(b"b.pdf", b"b")], &["--language", "pt", "--translation-of", &first]);
    let server = folder.serve();
    let answer = asked(&server, &folder, &first, "&clientinformation.wants=all");
    let mut names: Vec<String> = answer.pairs().into_iter().map(|(name, _)| name).collect();
    let mut expected: Vec<String> =
        ["archiveaddress", "ibi.archiveservice", "ibi.platformsoftware", "urlkey"]
            .map(str::to_owned)
            .to_vec();
    for relation in [
        "",
        ".lastedition",
        ".lastedition.metadata",
        ".lastedition.metadata(oai_dc)",
        ".metadata",
        ".metadata(oai_dc)",
        ".metadata.translation",
        ".translation(en)",
        ".translation(pt)",
    ] {
        let properties = ["contenttype", "ibi", "state", "timestamp", "url"];
        expected.extend(properties.map(|property| format!("{property}{relation}")));
    }
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
    assert!(answer.pair("ibi.translation(pt)").contains(&second));
    // With verbs, it is filtered as usual.
    let verbs = "&clientinformation.wants=all&parsedibiurl.verblist=GetMetadata";
    assert_eq!(asked(&server, &folder, &first, verbs).pair("url.translation(pt)"), "");
    assert_eq!(asked(&server, &folder, &first, "&clientinformation.wants=x").pair("url.metadata"), "");
}
