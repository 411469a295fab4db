//! Takes connections and does with each what the behaviour has it do.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::behaviour::{FeedAnswers, HostileAct, HostileBehaviour};
use crate::feed::FeedRequest;
use crate::identity::HostileIdentity;
use crate::question::ArchiveQuestion;
use crate::wire::{framed, good};

pub struct HostileServer {
    pub identity: HostileIdentity,
    behaviour: &'static HostileBehaviour,
    /// Whether its inclusion was answered.
    pub announced: AtomicBool,
    /// How often it misbehaved.
    pub misbehaved: AtomicU64,
    questions: AtomicU64,
    feed_requests: AtomicU64,
}

/// What becomes of a connection.
enum AfterAnswer {
    Keep,
    Close,
}

impl HostileServer {
    pub fn new(identity: HostileIdentity, behaviour: &'static HostileBehaviour) -> Self {
        Self {
            identity,
            behaviour,
            announced: AtomicBool::new(false),
            misbehaved: AtomicU64::new(0),
            questions: AtomicU64::new(0),
            feed_requests: AtomicU64::new(0),
        }
    }

    pub fn accept_all(self: &Arc<Self>, listener: &TcpListener) {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let Ok(stream) = stream else { continue };
            if matches!(self.behaviour.act, HostileAct::AcceptsNothing) && self.is_included() {
                // Connections are made by the kernel until its queue is full.
                self.misbehaved.fetch_add(1, Ordering::SeqCst);
                held.push(stream);
                loop {
                    std::thread::park();
                }
            }
            let server = Arc::clone(self);
            std::thread::spawn(move || {
                // Whoever asked may have left.
                let _ = server.serve(stream);
            });
        }
    }

    fn is_included(&self) -> bool {
        self.announced.load(Ordering::SeqCst)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        if let HostileAct::Greets(greet) = &self.behaviour.act
            && self.is_included()
        {
            self.misbehaved.fetch_add(1, Ordering::SeqCst);
            return greet(&self.identity, &mut stream);
        }
        while let Some(mut question) = ArchiveQuestion::read(&self.identity, &mut stream)? {
            if question.subject == "urlRequest" {
                question.number = self.questions.fetch_add(1, Ordering::SeqCst);
            }
            match self.answer(&question, &mut stream)? {
                AfterAnswer::Keep => {}
                AfterAnswer::Close => break,
            }
        }
        Ok(())
    }

    fn answer(&self, question: &ArchiveQuestion<'_>, stream: &mut TcpStream) -> io::Result<AfterAnswer> {
        let act = &self.behaviour.act;
        let misbehaves = |server: &Self| server.misbehaved.fetch_add(1, Ordering::SeqCst);
        if let HostileAct::Feeds(answers, _) | HostileAct::FeedDrives(answers, _) = act {
            return self.answer_with_feed(*answers, question, stream);
        }
        let drives = match (question.subject.as_str(), act) {
            ("inclusionConfirmationRequest", HostileAct::Confirms(drive))
            | ("acknowledgment", HostileAct::Acknowledges(drive))
            | ("", HostileAct::Accounts(drive))
            | ("urlRequest", HostileAct::Drives(drive)) => Some(drive),
            _ => None,
        };
        if let Some(drive) = drives {
            misbehaves(self);
            drive(question, stream)?;
            return Ok(AfterAnswer::Close);
        }
        let bytes = match (question.subject.as_str(), act) {
            ("inclusionConfirmationRequest", _) => good("confirmation yes\r\n"),
            ("acknowledgment", _) => good("notice {acknowledgment received}\r\n"),
            ("urlRequest", act) => {
                misbehaves(self);
                match act {
                    HostileAct::Says(say) => good(&say(question)),
                    HostileAct::Keeps(send) => send(question),
                    HostileAct::Sends(send) => {
                        stream.write_all(&send(question))?;
                        return Ok(AfterAnswer::Close);
                    }
                    _ => good(&question.false_original()),
                }
            }
            _ => framed("404 Not Found", "", b""),
        };
        stream.write_all(&bytes)?;
        // A connection of the time before would be served honestly for as long as it is kept.
        match act {
            HostileAct::Greets(_) | HostileAct::AcceptsNothing => Ok(AfterAnswer::Close),
            _ => Ok(AfterAnswer::Keep),
        }
    }

    fn answer_with_feed(
        &self,
        answers: FeedAnswers,
        question: &ArchiveQuestion<'_>,
        stream: &mut TcpStream,
    ) -> io::Result<AfterAnswer> {
        if let Some(mut request) = FeedRequest::of(question) {
            self.misbehaved.fetch_add(1, Ordering::SeqCst);
            request.number = self.feed_requests.fetch_add(1, Ordering::SeqCst);
            match &self.behaviour.act {
                HostileAct::FeedDrives(_, drive) => {
                    drive(&request, stream)?;
                    return Ok(AfterAnswer::Close);
                }
                HostileAct::Feeds(_, page) => stream.write_all(&page(&request))?,
                _ => {}
            }
            return Ok(AfterAnswer::Keep);
        }
        let bytes = match (question.subject.as_str(), answers) {
            ("inclusionConfirmationRequest", _) => good("confirmation yes\r\n"),
            ("acknowledgment", _) => good("notice {acknowledgment received}\r\n"),
            ("urlRequest", FeedAnswers::Empty) => good(""),
            ("urlRequest", FeedAnswers::Originals) => good(&question.false_original()),
            ("urlRequest", FeedAnswers::None) => return Ok(AfterAnswer::Close),
            // Reports of usage have bodies, which nobody reads here.
            _ => {
                stream.write_all(&framed("404 Not Found", "Connection: close\r\n", b""))?;
                return Ok(AfterAnswer::Close);
            }
        };
        stream.write_all(&bytes)?;
        Ok(AfterAnswer::Keep)
    }
}
