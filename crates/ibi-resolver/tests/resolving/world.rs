//! Archives and registry as a scenario has them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use ibi_protocol::analysis::ArchiveId;
use ibi_protocol::{UrlRequest, WireRequest};
use ibi_resolver::{
    ArchiveDirectory, ArchivePlatform, ArchiveTransport, ArchiveTransportError, RaisedAlert,
    RegisteredArchive, RegistrationStatus,
};

use crate::answers;
use crate::script::Reaction;

/// All that is outside the resolver.
#[derive(Default)]
pub(crate) struct World(Mutex<State>);

#[derive(Default)]
pub(crate) struct State {
    names: Vec<String>,
    archives: Vec<Arc<RegisteredArchive>>,
    snapshot: Arc<[Arc<RegisteredArchive>]>,
    pub(crate) always: HashMap<String, Reaction>,
    pub(crate) rules: Vec<Rule>,
    /// Who was asked what.
    pub(crate) questions: Vec<(String, String)>,
    /// Whom a client was said to be sent to: the URL and the persistent one.
    pub(crate) acknowledgments: Vec<(String, String, String)>,
    pub(crate) alerts: Vec<RaisedAlert>,
    keys: Vec<(String, String)>,
}

/// What an Archive says to a question.
pub(crate) struct Rule {
    pub(crate) place: String,
    pub(crate) name: String,
    pub(crate) question: String,
    pub(crate) after: Duration,
    pub(crate) reaction: Reaction,
    pub(crate) used: usize,
}

/// The service of the Archive of that name.
pub(crate) fn service(name: &str) -> String {
    format!("{name}.br/archive/2001/01.01.01.01")
}

impl World {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn archive(&self, name: &str, standing: RegistrationStatus, address: &str, also: &[String]) {
        let mut state = self.state();
        let at = state.names.iter().position(|other| other == name).unwrap_or(state.names.len());
        let archive = Arc::new(RegisteredArchive {
            id: ArchiveId(at as u64),
            service: service(name).parse().unwrap(),
            address: Some(address.to_owned()),
            hosts: also.to_vec(),
            standing,
            registered: 0,
            changed: 1_600_000_000,
            email: None,
            platform: ArchivePlatform::default(),
        });
        if at == state.names.len() {
            state.names.push(name.to_owned());
            state.archives.push(archive);
        } else {
            state.archives[at] = archive;
        }
        state.snapshot = state.archives.clone().into();
    }

    pub(crate) fn name(&self, service: &ibi_id::Label) -> String {
        let state = self.state();
        let at = state.archives.iter().position(|archive| archive.service == *service).unwrap();
        state.names[at].clone()
    }
}

/// A question in the words of the scenarios: `a.br/b/2009/02.16.17.46!:(oai_dc)/file list`.
fn question(request: &UrlRequest) -> String {
    let UrlRequest { ibi, file, verbs, .. } = request;
    let file = file.as_ref().map_or("", |file| file.as_str().unwrap());
    let list = if verbs.file_list { " list" } else { "" };
    format!("{ibi}{}{file}{list}", verbs.relation.modifiers())
}

impl State {
    fn react(&mut self, name: &str, archive: &RegisteredArchive, query: &str) -> (Duration, Reaction) {
        let no_time = Duration::from_millis(1);
        match WireRequest::parse(query).unwrap() {
            WireRequest::Url(request) => {
                let asked = question(&request);
                self.questions.push((name.to_owned(), asked.clone()));
                if let Some(reaction) = self.always.get(name) {
                    return (no_time, reaction.clone());
                }
                let mut rules =
                    self.rules.iter_mut().filter(|rule| rule.name == name && rule.question == asked);
                // The first that was not used yet, else the last.
                let (mut last, mut next) = (None, None);
                for rule in &mut rules {
                    if rule.used == 0 && next.is_none() {
                        next = Some(rule);
                    } else if next.is_none() {
                        last = Some(rule);
                    }
                }
                let Some(rule) = next.or(last) else { return (no_time * 10, Reaction::Nothing) };
                rule.used += 1;
                let (after, mut reaction) = (rule.after, rule.reaction.clone());
                if let Reaction::Says(said) = &reaction {
                    let key = format!("{:010}", self.keys.len());
                    reaction = Reaction::Raw(answers::body(said, archive, &request.ibi, &key));
                    self.keys.push((name.to_owned(), key));
                }
                (after, reaction)
            }
            WireRequest::Acknowledgment(acknowledgment) => {
                let key = (name.to_owned(), acknowledgment.urlkey);
                let before = self.keys.len();
                self.keys.retain(|other| *other != key);
                assert_ne!(self.keys.len(), before, "{name} did not give the key {}", key.1);
                self.keys.push((String::new(), key.1));
                self.acknowledgments.push((
                    name.to_owned(),
                    acknowledgment.url.decoded(),
                    acknowledgment.persistent.decoded(),
                ));
                (no_time, Reaction::Raw("notice {acknowledgment received}".to_owned()))
            }
            other => panic!("{other:?}"),
        }
    }
}

impl ArchiveTransport for World {
    fn ask(
        &self,
        archive: &RegisteredArchive,
        query: &str,
    ) -> impl Future<Output = Result<Bytes, ArchiveTransportError>> + Send + 'static {
        let mut state = self.state();
        assert_eq!(archive.standing, RegistrationStatus::OnLine, "asked although it is not online");
        let name = state.names[archive.id.0 as usize].clone();
        let (after, reaction) = state.react(&name, archive, query);
        async move {
            tokio::time::sleep(after).await;
            match reaction {
                Reaction::Nothing => Ok(Bytes::new()),
                Reaction::Hangs => std::future::pending().await,
                Reaction::Fails(why) => Err(ArchiveTransportError(why)),
                Reaction::Raw(text) => Ok(Bytes::from(text)),
                Reaction::Bytes(count) => Ok(Bytes::from("x ".repeat(count / 2))),
                Reaction::Says(_) => panic!("not turned into pairs"),
            }
        }
    }
}

impl ArchiveDirectory for World {
    fn archives(&self) -> Arc<[Arc<RegisteredArchive>]> {
        Arc::clone(&self.state().snapshot)
    }

    fn record_alert(&self, suspected: &RaisedAlert, now: i64) {
        assert!(now == 1_700_000_000 && suspected.claims.iter().all(|claim| claim.seen == now));
        self.state().alerts.push(suspected.clone());
    }
}
