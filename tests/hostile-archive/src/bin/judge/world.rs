//! Two honest Archives, with items of every kind.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{RunningServer, must};
use crate::tokens::FollowTokens;

/// The key that honest Archives are registered with.
pub const HONEST_KEY: &str = "1234567890-0987654321";

pub struct HonestWorld {
    pub home: PathBuf,
    pub archives: [HonestArchive; 2],
    pub items: HonestItems,
    /// What resolvers follow the honest Archives with.
    pub tokens: FollowTokens,
    _servers: [RunningServer; 2],
}

pub struct HonestArchive {
    pub service: String,
    pub address: String,
}

/// The labels of what the honest Archives have.
pub struct HonestItems {
    /// With two files and a translation into Portuguese.
    pub plain: String,
    pub first_edition: String,
    pub second_edition: String,
    /// Its Original is in the first Archive, and a copy in the second.
    pub copied: String,
    pub removed: String,
    /// In the second Archive.
    pub other: String,
    /// Its Original is in the second Archive, and no Archive has the prefix of its label.
    pub imported: String,
    /// Under the prefix of the first Archive, and never given.
    pub unknown: String,
}

/// An address of this machine that nobody else uses: loopback has many, and hosts matter here.
pub fn address(number: usize, port: usize) -> String {
    let process = std::process::id();
    format!("127.{}.{}.{number}:{port}", 1 + process / 250 % 250, 1 + process % 250)
}

impl HonestWorld {
    pub fn prepare(ibi: &str) -> Result<Self, String> {
        let home = std::env::temp_dir().join(format!("hostile-archive-{}", std::process::id()));
        let failed = |why: std::io::Error| format!("{}: {why}", home.display());
        fs::create_dir_all(home.join("files/data")).map_err(failed)?;
        fs::write(home.join("files/report.txt"), "a report").map_err(failed)?;
        fs::write(home.join("files/data/table.csv"), "a,b").map_err(failed)?;
        let run = |archive: &str, arguments: &[&str]| {
            let mut command = Command::new(ibi);
            must(command.arg("archive").args(arguments).arg("--data").arg(home.join(archive))).map(first_word)
        };
        let archive = |name: &str, number: usize| {
            // A prefix belongs to one folder of a machine, also when that folder is gone.
            let host = format!("{name}.h{}.honest.test", std::process::id());
            let service = run(name, &["init", "--host", &host, "--allow-private"])?;
            Ok::<_, String>(HonestArchive { service, address: address(number, 8642) })
        };
        let archives = [archive("a", 1)?, archive("b", 2)?];
        let files = home.join("files").display().to_string();
        let deposit = |archive: &str, more: &[&str]| {
            let common = ["deposit", &files, "--target", "report.txt", "--dc", "title=A report"];
            run(archive, &[&common, more].concat())
        };
        let plain = deposit("a", &["--language", "en"])?;
        deposit("a", &["--language", "pt", "--translation-of", &plain])?;
        let first_edition = deposit("a", &["--language", "en"])?;
        let second_edition = deposit("a", &["--language", "en", "--next-edition-of", &first_edition])?;
        let copied = deposit("a", &["--language", "en"])?;
        let removed = deposit("a", &[])?;
        run("a", &["remove", &removed, "--reason", "a test", "--yes"])?;
        let other = deposit("b", &[])?;
        let imported = format!("old.h{}.honest.test/archive/1999/02.03.04.05", std::process::id());
        deposit("b", &["--language", "en", "--label", &imported, "--original"])?;
        let tokens = FollowTokens::listen(&address(3, 8642))?;
        let key = home.join("key");
        fs::write(&key, HONEST_KEY).map_err(failed)?;
        let serve = |name: &str, archive: &HonestArchive| {
            // What an overloaded machine delays is not what is judged here.
            let mut command = Command::new("nice");
            command.args(["-n", "-5", ibi, "archive", "serve", "--allow-private"]);
            command
                .args(["--listen", &archive.address, "--resolver", &tokens.url(), "--key-file"])
                .arg(&key)
                .arg("--data")
                .arg(home.join(name))
                .env("IBI_LOG", "warn");
            RunningServer::start(&mut command, &home.join(format!("{name}.log")))
        };
        let servers = [serve("a", &archives[0])?, serve("b", &archives[1])?];
        run("b", &["copy", &copied, "--from", &format!("http://{}", archives[0].address)])?;
        let prefix: Vec<&str> = archives[0].service.split('/').take(2).collect();
        let unknown = format!("{}/2001/02.03.04.05", prefix.join("/"));
        let items =
            HonestItems { plain, first_edition, second_edition, copied, removed, other, imported, unknown };
        Ok(Self { home, archives, items, tokens, _servers: servers })
    }
}

impl Drop for HonestWorld {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn first_word(printed: String) -> String {
    printed.split_whitespace().next().unwrap_or_default().to_owned()
}
