//! Questions to Archives that are under way. Equal ones are asked once: whoever asks the same of
//! the same Archive meanwhile gets the same answer. It is kept no longer than it is under way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{Shared, WeakShared};
use ibi_protocol::analysis::ArchiveId;
use tokio::time::Instant;

use super::gather::PendingFuture;
use super::roster::RosterMember;
use crate::archive::RegisteredArchive;
use crate::transport::{ArchiveTransport, ArchiveTransportError};

/// A question that has been under way for longer is not joined: whoever asks now gets an answer
/// that is hardly older than the question, and the whole time to wait for it.
const MAX_JOINED_AGE: Duration = Duration::from_millis(500);

/// The response body of an Archive.
pub(super) type AnswerBody = Result<Bytes, ArchiveTransportError>;

/// The questions under way. Clones share them.
#[derive(Clone, Default)]
pub(super) struct PendingQuestions(Arc<PendingQuestionsInner>);

#[derive(Default)]
struct PendingQuestionsInner {
    questions: Mutex<HashMap<QuestionKey, PendingQuestion>>,
    next: AtomicU64,
}

/// An Archive and the query: it holds the address of the client, on which the answer may depend.
#[derive(Clone, PartialEq, Eq, Hash)]
struct QuestionKey {
    archive: ArchiveId,
    query: Arc<str>,
}

#[derive(Clone)]
struct PendingQuestion {
    /// Not held: a question that nobody waits for is cancelled.
    answer: WeakShared<PendingFuture<AnswerBody>>,
    /// The Archive as it was asked: one that has moved is asked anew.
    archive: Arc<RegisteredArchive>,
    began: Instant,
    number: u64,
}

impl PendingQuestions {
    /// Asks an Archive, or joins an equal question that is under way if `shares`. The error says
    /// why the Archive is not asked.
    pub(super) fn ask<A: ArchiveTransport>(
        &self,
        ask: &A,
        member: &RosterMember,
        query: &Arc<str>,
        shares: bool,
    ) -> Result<PendingFuture<AnswerBody>, &'static str> {
        let now = Instant::now();
        let key = QuestionKey { archive: member.archive.id, query: Arc::clone(query) };
        if shares && let Some(answer) = self.join(&key, &member.archive, now) {
            metrics::counter!("ibi_questions_joined_total").increment(1);
            return Ok(Box::pin(answer));
        }
        let permit = member.admit(now)?;
        let asked = ask.ask(&member.archive, query);
        if !shares {
            return Ok(Box::pin(async move {
                let answer = asked.await;
                permit.answered();
                answer
            }));
        }
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let end = QuestionEnd { pending: self.clone(), key: key.clone(), number };
        let answer: PendingFuture<AnswerBody> = Box::pin(async move {
            let _end = end;
            let answer = asked.await;
            permit.answered();
            answer
        });
        let answer = answer.shared();
        if let Some(weak) = answer.downgrade() {
            let archive = Arc::clone(&member.archive);
            self.lock().insert(key, PendingQuestion { answer: weak, archive, began: now, number });
        }
        Ok(Box::pin(answer))
    }

    fn join(
        &self,
        key: &QuestionKey,
        archive: &RegisteredArchive,
        now: Instant,
    ) -> Option<Shared<PendingFuture<AnswerBody>>> {
        // What is dropped with the last copy of an answer locks the table, too: not under the lock.
        let pending = self.lock().get(key).cloned()?;
        let is_equal = now.duration_since(pending.began) <= MAX_JOINED_AGE && *pending.archive == *archive;
        pending.answer.upgrade().filter(|_| is_equal)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QuestionKey, PendingQuestion>> {
        self.0.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.lock().len()
    }
}

/// Takes a question off the table when it is answered or cancelled.
struct QuestionEnd {
    pending: PendingQuestions,
    key: QuestionKey,
    number: u64,
}

impl Drop for QuestionEnd {
    fn drop(&mut self) {
        let mut questions = self.pending.lock();
        if questions.get(&self.key).is_some_and(|question| question.number == self.number) {
            questions.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests;
