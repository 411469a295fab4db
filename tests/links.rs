//! Editions and translations in different Archives (clause 2.4, *Across Archives*): a resolver and
//! Archives, each a process of the built binary.

mod consent;
mod groups;
mod hostile;
mod orders;
mod restored;

use serde_json::Value;

use crate::online::client::{Reply, ask};
use crate::online::server::Server;
use crate::online::{Folder, until};
use crate::resolver::Resolver;

/// A resolver with online Archives.
struct Federation {
    resolver: Resolver,
    _answers: Server,
    archives: Vec<Member>,
}

/// An Archive of a federation.
struct Member {
    folder: Folder,
    server: Server,
}

impl Federation {
    /// A number of Archives, none of which trusts another.
    fn new(count: usize) -> Self {
        let resolver = Resolver::new();
        let answers = resolver.serve();
        let folders = (0..count).map(|_| Folder::new());
        let archives = folders.map(|folder| Member { server: resolver.on_line(&folder), folder }).collect();
        Self { resolver, _answers: answers, archives }
    }

    /// The same, each of which trusts all others.
    fn of_friends(count: usize) -> Self {
        let federation = Self::new(count);
        let services: Vec<String> =
            federation.archives.iter().map(|member| member.folder.service.clone()).collect();
        for member in &federation.archives {
            for service in services.iter().filter(|service| **service != member.folder.service) {
                member.trusts(service);
            }
        }
        federation
    }

    fn get(&self, url: &str, languages: &str) -> Reply {
        let header = match languages {
            "" => String::new(),
            languages => format!("Accept-Language: {languages}\r\n"),
        };
        ask(&self.resolver.at, "GET", &format!("/{url}"), &header, b"")
    }

    /// The result of a persistent URL: the status, or the path below the Archive.
    fn leads(&self, url: &str) -> String {
        self.leads_for(url, "")
    }

    fn leads_for(&self, url: &str, languages: &str) -> String {
        let reply = self.get(url, languages);
        match reply.status {
            302 => {
                let location = reply.header("location").to_owned();
                location.splitn(4, '/').nth(3).unwrap_or_default().to_owned()
            }
            status => status.to_string(),
        }
    }
}

impl Member {
    fn url(&self) -> String {
        format!("http://{}", self.server.at)
    }

    fn deposit(&self, content: &str, arguments: &[&str]) -> String {
        self.folder.deposit(&[(b"a.txt", content.as_bytes())], arguments)
    }

    fn does(&self, command: &str, arguments: &[&str]) -> Vec<Value> {
        let run = self.folder.archive(command, arguments);
        assert_eq!(run.status, 0, "{command} {arguments:?}: {}{}", run.stdout, run.stderr);
        run.json()
    }

    fn trusts(&self, service: &str) {
        let data = self.folder.data().display().to_string();
        let run = crate::binary::ibi(&["archive", "links", "trust", service, "--data", &data]);
        assert_eq!(run.status, 0, "{}", run.stderr);
    }

    /// The status of the link from a newer item.
    fn status_of(&self, newer: &str) -> String {
        let links = self.does("links list", &[]);
        let link = links.iter().rev().find(|link| link["newer"] == newer);
        link.and_then(|link| link["status"].as_str()).unwrap_or("unknown").to_owned()
    }

    fn holder_token(&self) -> String {
        let path = self.folder.place.path().join("holder.token");
        std::fs::write(&path, self.folder.token("holder")).unwrap();
        path.display().to_string()
    }

    fn hand_over(&self, label: &str, to: &Self, keep: &str) {
        let token = to.holder_token();
        self.does("transfer", &[label, "--to", &to.url(), "--token-file", &token, "--keep", keep]);
    }
}

fn settled(member: &Member, newer: &str, status: &str) {
    until(&format!("{newer} is {status}"), || member.status_of(newer) == status);
}
