//! Archives of the examples: two providers without a resolver (001 §5), and two of INPE's that
//! continue under their own labels.

use std::fs;

use serde_json::{Value, json};

use super::WorkedWorld;
use super::replay::normal;
use crate::binary::ibi;
use crate::online::Folder;
use crate::online::server::Server;

/// The software of the platform, in every answer of the examples.
const PLATFORM_SOFTWARE: &str = "dpi.inpe.br/banon/1998/08.02.08.56";

/// The Archives `mtc-m16c` and `mtc-m16d` as the examples have them: services, items, metadata and
/// dates from before.
pub(super) struct InpeArchives {
    c: (Folder, Server),
    d: (Folder, Server),
}

/// An item of them: labels, label of the metadata, file, language and link, last updates of the
/// file and of the metadata.
struct InpeItem {
    labels: &'static [&'static str],
    metadata: &'static str,
    file: &'static [u8],
    more: &'static [&'static str],
    updated: [&'static str; 2],
}

const OF_C: [InpeItem; 2] = [
    InpeItem {
        labels: &["sid.inpe.br/mtc-m18@80/2009/07.21.13.23", "8JMKD3MGP8W/35MME4E"],
        metadata: "sid.inpe.br/mtc-m18@80/2009/07.21.13.23.47",
        file: b"CCSDS 643.0-B-1.pdf",
        more: &["--language", "en"],
        updated: ["2009-07-21T13:23:45Z", "2014-04-04T17:39:54Z"],
    },
    InpeItem {
        labels: &["sid.inpe.br/mtc-m18@80/2009/08.25.19.43"],
        metadata: "sid.inpe.br/mtc-m18@80/2009/08.25.19.43.10",
        file: b"RTC-07.pdf",
        more: &["--language", "pt", "--translation-of", "8JMKD3MGP8W/35MME4E"],
        updated: ["2011-09-22T14:45:11Z", "2014-04-04T17:39:54Z"],
    },
];

const OF_D: [InpeItem; 2] = [
    InpeItem {
        labels: &["sid.inpe.br/mtc-m19/2013/09.04.12.27.57", "8JMKD3MGP7W/3EPGUE5"],
        metadata: "sid.inpe.br/mtc-m19/2013/09.04.12.27.58",
        file: b"Relat\xf3rio Final.pdf",
        more: &[],
        updated: ["2013-10-04T14:32:14Z", "2014-04-04T17:39:54Z"],
    },
    InpeItem {
        labels: &["iconet.com.br/banon/2009/09.09.22.01", "LK47B6W/362SFKH"],
        metadata: "iconet.com.br/banon/2009/09.09.22.01.10",
        file: b"@relatorio.pdf",
        more: &[],
        updated: ["2011-05-04T14:32:14Z", "2014-04-04T17:39:54Z"],
    },
];

impl InpeItem {
    fn deposit(&self, folder: &Folder, more: &[&str]) {
        let mut arguments = vec!["--original"];
        arguments.extend(self.labels.iter().flat_map(|label| ["--label", label]));
        arguments.extend_from_slice(self.more);
        arguments.extend_from_slice(more);
        let mut files: Vec<(&[u8], &[u8])> = vec![(self.file, b"%PDF")];
        if self.file == b"@relatorio.pdf" {
            files.push((b"reference.bib", b"@book"));
            arguments.extend(["--target", "@relatorio.pdf"]);
        }
        folder.put(&files, &arguments);
    }
}

impl InpeArchives {
    fn new() -> Self {
        let archive = |service: &str, address: &str, items: &[InpeItem]| {
            let folder = Folder::begun_with(&["--service", service]);
            for item in items {
                let [data, metadata] = item.updated;
                let dates = ["--updated", data, "--metadata-updated", metadata];
                item.deposit(&folder, &[&["--metadata-label", item.metadata], &dates[..]].concat());
            }
            set_platform_software(&folder, PLATFORM_SOFTWARE);
            let server = folder.serve_with(&["--address", address]);
            (folder, server)
        };
        Self {
            c: archive("sid.inpe.br/mtc-m18@80/2008/03.17.15.17", "mtc-m16c.sid.inpe.br", &OF_C),
            d: archive("sid.inpe.br/mtc-m19@80/2009/08.21.17.02", "mtc-m16d.sid.inpe.br", &OF_D),
        }
    }
}

/// Says which software the Archive runs: `ibi.platformsoftware` (003 Algorithm 2, line 9).
pub(super) fn set_platform_software(folder: &Folder, label: &str) {
    let run = folder.archive("settings", &["--platform-software", label]);
    assert_eq!(run.status, 0, "{}", run.stderr);
}

/// An Archive with the items of `mtc-m16d` and a service of its own: all that the examples say of
/// URLs.
fn plain() -> (Folder, Server) {
    let folder = Folder::new();
    for item in &OF_D {
        item.deposit(&folder, &[]);
    }
    let server = folder.serve_with(&["--address", "mtc-m16d.sid.inpe.br"]);
    (folder, server)
}

/// What an Archive answers about an item: the pairs, their names, and what their only URL shows.
pub(super) fn answer(world: &WorkedWorld, input: &Value) -> Value {
    let own;
    let (folder, server) = match input["archive"].as_str().unwrap() {
        "mtc-m16c" => {
            let InpeArchives { c, .. } = world.inpe.get_or_init(InpeArchives::new);
            (&c.0, &c.1)
        }
        "mtc-m16d" => {
            let InpeArchives { d, .. } = world.inpe.get_or_init(InpeArchives::new);
            (&d.0, &d.1)
        }
        _ => {
            own = plain();
            (&own.0, &own.1)
        }
    };
    let more = input["query"].as_str().unwrap_or_default();
    let query = format!(
        "servicesubject=urlRequest&clientinformation.ipaddress=150.163.2.175&parsedibiurl.ibi={}{more}",
        input["ibi"].as_str().unwrap()
    );
    let reply = server.service(folder, &query);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let all = reply.pairs();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let pairs: Value = all.iter().map(|(name, value)| (name.clone(), normal(name, value))).collect();
    let joined = ["archiveaddress", "state"].map(|name| format!("{name} {}", reply.pair(name))).join(" ");
    let in_order = reply.text().replace("\r\n", " ");
    let path = reply.pair("url").split_once(".inpe.br").map(|(_, path)| path.to_owned()).unwrap_or_default();
    let page = if path.is_empty() { String::new() } else { server.get(&path).text() };
    let shown: Vec<&str> =
        ["@relatorio.pdf", "reference.bib"].into_iter().filter(|name| page.contains(name)).collect();
    let holds = joined.split(' ').all(|word| in_order.contains(word));
    json!({ "names": names, "pairs": pairs, "joined": if holds { &joined } else { "" }, "shown": shown })
}

/// The two providers of 001 §5, and the software that one imports from the other.
struct TwoProviders {
    dpi: Folder,
    iconet: Folder,
}

impl TwoProviders {
    /// The provider `dpi` deposits; `iconet` imports a copy, nobody resolving anything.
    fn new(input: &Value) -> Self {
        let providers = Self { dpi: Folder::new(), iconet: Folder::new() };
        let label = input["label"].as_str().unwrap();
        providers.dpi.put(&[(b"utilities1.tcl", b"proc")], &["--label", label, "--original"]);
        let server = providers.dpi.serve();
        let run = providers.iconet.archive("copy", &[label, "--from", &format!("http://{}", server.at)]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        providers
    }
}

/// 001 §5: a copy is imported before anybody registers with a resolver.
pub(super) fn imported(input: &Value) -> Value {
    let label = input["label"].as_str().unwrap();
    let TwoProviders { dpi, iconet } = TwoProviders::new(input);
    let shown = |folder: &Folder| folder.archive("show", &[label]).json().remove(0);
    let [there, here] = [shown(&dpi), shown(&iconet)];
    let path = |folder: &Folder| {
        fs::read(folder.data().join("tree").join(label).join("v1/content/doc/utilities1.tcl"))
    };
    json!({
        "there": { "rep": there["rep"], "state": there["state"] },
        "here": { "rep": here["rep"], "state": here["state"] },
        "same bytes": path(&dpi).unwrap() == path(&iconet).unwrap(),
    })
}

/// 001 §5: a relative link between items of two providers, over HTTP and on disk.
pub(super) fn linked(input: &Value) -> Value {
    let TwoProviders { iconet, .. } = TwoProviders::new(input);
    let [page, link] = ["page", "link"].map(|name| input[name].as_str().unwrap());
    let (label, file) = page.split_once("/doc/").unwrap();
    iconet.put(&[(file.as_bytes(), b"source")], &["--label", label, "--original"]);
    let server = iconet.serve();
    let mut steps: Vec<&str> = page.split('/').collect();
    steps.pop();
    for step in link.split('/') {
        if step == ".." {
            steps.pop();
        } else {
            steps.push(step);
        }
    }
    let over_http = server.get(&format!("/col/{}", steps.join("/")));
    let plain = iconet.place.path().join("plain");
    let [out, data] = [&plain, &iconet.data()].map(|path| path.display().to_string());
    let run = ibi(&["archive", "plain-tree", "--data", &data, "--out", &out]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    // As the script does it: from the folder of the page, along the link.
    let on_disk = fs::read_to_string(plain.join(page).parent().unwrap().join(link));
    json!({ "over HTTP": over_http.text(), "on disk": on_disk.unwrap_or_default() })
}
