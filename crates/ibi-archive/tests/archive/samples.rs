//! Frozen samples: what this program wrote once, it reads for ever.

use std::fs;
use std::path::{Path, PathBuf};

use ibi_archive::rebuild::rebuild;
use ibi_archive::store::State;

use crate::ours::{Ours, answers};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/data-1")
}

fn copied(ours: &Ours) -> PathBuf {
    let data = ours.data();
    let copy = std::process::Command::new("cp").arg("-r").arg(sample()).arg(&data).status();
    assert!(copy.unwrap().success());
    // Git keeps no empty folders, and the index is not kept.
    fs::create_dir_all(data.join("staging")).unwrap();
    data
}

/// A data folder of format 1: a folder with a translation and a second edition, a file from
/// elsewhere, a removed one.
#[test]
fn a_data_folder_of_format_1_is_still_read() {
    let ours = Ours::new();
    let data = copied(&ours);
    let rebuilt = rebuild(&data, "tester", &|_| ()).unwrap();
    assert_eq!(rebuilt.items, 6);
    assert!(rebuilt.adopted.is_empty() && rebuilt.missing.is_empty() && rebuilt.damaged.is_empty());
    let (holdings, _) = ibi_archive::opening::open_to_read(&data).unwrap();
    let all = holdings.list("", 100).unwrap();
    let count = |state| all.iter().filter(|holding| holding.state == state).count();
    assert_eq!((count(State::Original), count(State::Copy), count(State::Deleted)), (4, 1, 1));
    assert!(!answers(&holdings).contains("Err"), "every byte is what it was");
}

/// 2.4, *Nothing is lost*: links between Originals of one Archive from before count as accepted.
#[test]
fn links_from_before_count_as_accepted() {
    let ours = Ours::new();
    let data = copied(&ours);
    rebuild(&data, "tester", &|_| ()).unwrap();
    let (archive, _) = ibi_archive::opening::open(&data, "tester").unwrap();
    let links = archive.holdings().all_links(None).unwrap();
    let kinds: Vec<_> = links.iter().map(|link| (link.kind, link.status)).collect();
    assert_eq!(kinds, [("translation", "accepted"), ("edition", "accepted")]);
    drop(archive);
    let journal = fs::read_to_string(data.join("journal")).unwrap();
    assert!(journal.starts_with("ibi journal, format 5\n"));
    let (archive, _) = ibi_archive::opening::open(&data, "tester").unwrap();
    assert_eq!(archive.holdings().all_links(None).unwrap(), links, "said once");
    assert_eq!(fs::read_to_string(data.join("journal")).unwrap(), journal);
}

/// An index that another version of the program made is made anew when the Archive is opened.
#[test]
fn an_index_of_another_form_is_made_anew() {
    let ours = Ours::new();
    let data = copied(&ours);
    rebuild(&data, "tester", &|_| ()).unwrap();
    let before = answers(&ibi_archive::opening::open_to_read(&data).unwrap().0);
    for writes in [false, true] {
        let index = rusqlite::Connection::open(data.join("index.sqlite")).unwrap();
        index.execute_batch("UPDATE followed SET form = 2").unwrap();
        drop(index);
        let holdings = match writes {
            true => ibi_archive::opening::open(&data, "tester")
                .map(drop)
                .and_then(|()| ibi_archive::opening::open_to_read(&data)),
            false => ibi_archive::opening::open_to_read(&data),
        };
        assert_eq!(answers(&holdings.unwrap().0), before);
    }
}

#[test]
fn a_newer_data_folder_is_refused() {
    let ours = Ours::new();
    let data = copied(&ours);
    let path = data.join("archive");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("format 1", "format 2")).unwrap();
    let error = ibi_archive::opening::open_to_read(&data).err().unwrap().to_string();
    assert!(error.contains("newer program"), "{error}");
    fs::write(&path, text.replace("service", "serv1ce")).unwrap();
    let error = ibi_archive::opening::open_to_read(&data).err().unwrap().to_string();
    assert!(error.contains("damaged"), "{error}");
}

/// What the service keeps for itself, in its first format: tokens, a draft with a file, counts and
/// an answer.
#[test]
fn the_service_of_format_1_is_still_read() {
    use ibi_archive::service::{DraftQuota, DraftStore, ServiceRole, Statistics, open_tokens};
    use ibi_protocol::ContentType;
    let ours = Ours::new();
    fs::create_dir_all(ours.data()).unwrap();
    let sample = sample().with_file_name("service-1");
    let copy =
        std::process::Command::new("cp").arg("-r").arg(sample).arg(ours.data().join("service")).status();
    assert!(copy.unwrap().success());
    let secret = "ibi_a77de6936d76846bfce58ca0fb75c55ef6ed998fc716c0b93b33af3408844f08";
    let token = open_tokens(&ours.data()).find_by_secret(secret).unwrap().unwrap();
    assert_eq!(
        (token.id.as_str(), token.name.as_str(), token.role),
        ("27411583", "Ana", ServiceRole::Depositor)
    );
    let drafts = DraftStore::open(&ours.data(), DraftQuota::default()).unwrap();
    let names = drafts.list_draft_ids(Some("27411583"), "").unwrap();
    let [name] = &names[..] else { panic!("{names:?}") };
    let draft = drafts.get(name).unwrap();
    assert_eq!(draft.described.language, Some(Some("pt".parse().unwrap())));
    let files: Vec<_> = draft.files().map(|file| (file.name.as_str(), file.size)).collect();
    assert_eq!(files, [("a.txt", 6)]);
    let statistics = Statistics::open(&ours.data(), [0; 32]).unwrap();
    let item = "inpe.br/smp/2026/11.16.04.49.18.39";
    // Clause 3.5: what was counted then is counted of the data.
    assert_eq!(statistics.item_counts(item, ContentType::Metadata).unwrap(), []);
    let counted = statistics.item_counts(item, ContentType::Data).unwrap();
    assert_eq!((counted[0].what.as_str(), counted[0].robots, counted[0].times), ("download", false, 1));
    assert!(statistics.stored_answer("27411583", "sample").unwrap().unwrap().answer.contains("Amostra"));
}

/// The service's state in its second form: data and metadata counted apart, and a copy that is
/// behind.
#[test]
fn the_service_of_form_2_is_still_read() {
    use ibi_archive::service::Statistics;
    use ibi_protocol::ContentType;
    let ours = Ours::new();
    let service = ours.data().join("service");
    fs::create_dir_all(&service).unwrap();
    let state = service.join("state.sqlite");
    fs::copy(sample().with_file_name("service-2").join("state.sqlite"), &state).unwrap();
    let item = "items-sample.test/a/2026/11.17.20.24.48.55";
    let statistics = Statistics::open(&ours.data(), [0; 32]).unwrap();
    for (kind, what) in [(ContentType::Data, "download"), (ContentType::Metadata, "view")] {
        let counted = statistics.item_counts(item, kind).unwrap();
        assert_eq!((counted.len(), counted[0].what.as_str(), counted[0].times), (1, what, 1));
    }
    let behind = ibi_store::ServiceStorage::open(&state).unwrap().stale_copy(item).unwrap().unwrap();
    assert_eq!((behind.version, behind.latest), (1, 2));
    assert_eq!(behind.holder, "http://127.0.0.1:18431");
}

/// The service's state in its third form, which knows who minted labels, and tokens of format 2,
/// which expire and may have prefixes.
#[test]
fn the_service_of_form_3_is_still_read() {
    use ibi_archive::service::{Statistics, open_tokens};
    let ours = Ours::new();
    let service = ours.data().join("service");
    fs::create_dir_all(&service).unwrap();
    for file in ["state.sqlite", "tokens.json"] {
        fs::copy(sample().with_file_name("service-3").join(file), service.join(file)).unwrap();
    }
    let statistics = Statistics::open(&ours.data(), [0; 32]).unwrap();
    let minted_by = |text: &str| statistics.minted_by(text.parse().unwrap()).unwrap();
    assert_eq!(minted_by("1795000002.25").as_deref(), Some("5eed0123456789ab"));
    assert_eq!(minted_by("1795000002.75"), None);
    let token =
        open_tokens(&ours.data()).find_by_secret(&format!("ibi_{}", "5eed".repeat(16))).unwrap().unwrap();
    assert_eq!((token.id.as_str(), token.name.as_str()), ("5eed0123456789ab", "Ana"));
    assert_eq!(token.expires.as_deref(), Some("2027-01-31T00:00:00Z"));
    assert_eq!(token.prefixes, ["dpi.inpe.br/banon"]);
}
