//! What a behaviour is.

use std::io;
use std::net::TcpStream;

use crate::feed::FeedRequest;
use crate::identity::HostileIdentity;
use crate::question::ArchiveQuestion;

/// One way to misbehave.
pub struct HostileBehaviour {
    pub name: &'static str,
    pub effect: BehaviourEffect,
    /// The clause of the standard and the threat that it tests.
    pub clause: &'static str,
    pub does: &'static str,
    pub act: HostileAct,
}

/// What the standard makes of its answers. A judge derives from it what a resolver may answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BehaviourEffect {
    /// None counts: it is as if the Archive were silent (clause 4.2 step 2).
    Fails,
    /// It holds nothing.
    Nothing,
    /// It has a copy of everything.
    Copy,
    /// It has the Original of everything.
    Original,
    /// It removed everything.
    Deleted,
    /// Everything is reserved for a draft.
    Reserved,
    /// Any of these, now this and now that, or what clause 4.3 has for chains and spellings.
    Varies,
    /// Its feed claims things, and its answers do not: what is asked afresh is as before.
    Feed,
}

impl BehaviourEffect {
    pub fn word(self) -> &'static str {
        match self {
            BehaviourEffect::Fails => "fails",
            BehaviourEffect::Nothing => "nothing",
            BehaviourEffect::Copy => "copy",
            BehaviourEffect::Original => "original",
            BehaviourEffect::Deleted => "deleted",
            BehaviourEffect::Reserved => "reserved",
            BehaviourEffect::Varies => "varies",
            BehaviourEffect::Feed => "feed",
        }
    }
}

/// How it is done. What is not mentioned is done as an honest Archive does it, and where questions
/// are not mentioned, the answers are false Originals.
pub enum HostileAct {
    /// Answers questions with this body, well framed.
    Says(fn(&ArchiveQuestion<'_>) -> String),
    /// Answers questions with these bytes, and closes the connection.
    Sends(fn(&ArchiveQuestion<'_>) -> Vec<u8>),
    /// The same, and waits for the next question on the connection.
    Keeps(fn(&ArchiveQuestion<'_>) -> Vec<u8>),
    /// Does this with the connection after a question.
    Drives(fn(&ArchiveQuestion<'_>, &mut TcpStream) -> io::Result<()>),
    /// Does this with a new connection, before any question, once it is included.
    Greets(fn(&HostileIdentity, &mut TcpStream) -> io::Result<()>),
    /// Accepts no connection once it is included.
    AcceptsNothing,
    /// Does this when it is called back for its confirmation.
    Confirms(fn(&ArchiveQuestion<'_>, &mut TcpStream) -> io::Result<()>),
    /// Does this with an acknowledgment.
    Acknowledges(fn(&ArchiveQuestion<'_>, &mut TcpStream) -> io::Result<()>),
    /// Does this with requests that are not the standard's, such as for evidence.
    Accounts(fn(&ArchiveQuestion<'_>, &mut TcpStream) -> io::Result<()>),
    /// Gives a follow token when it comes online, answers requests of its feed with these bytes,
    /// and questions in this way.
    Feeds(FeedAnswers, fn(&FeedRequest<'_>) -> Vec<u8>),
    /// The same, and does this with the connection after a request of its feed.
    FeedDrives(FeedAnswers, fn(&FeedRequest<'_>, &mut TcpStream) -> io::Result<()>),
    /// Comes online in this way: what the resolver answered.
    Announces(fn(&HostileIdentity) -> io::Result<String>),
    /// Comes online, and then does this again and again.
    Repeats(fn(&HostileIdentity, u64)),
}

/// How an Archive with a feed answers questions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FeedAnswers {
    /// It holds nothing.
    Empty,
    /// It has the Original of everything.
    Originals,
    /// It closes the connection.
    None,
}
