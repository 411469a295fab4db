//! A connection that detects stalled readers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::ServerLimits;

/// Disconnects a peer that reads too slowly.
pub(crate) struct StallGuard<S> {
    stream: S,
    patience: Duration,
    /// Bytes that must be read within that time while more are pending.
    least: u64,
    waiting: Option<Pin<Box<Sleep>>>,
    taken: u64,
}

impl<S> StallGuard<S> {
    pub(crate) fn new(stream: S, limits: &ServerLimits) -> Self {
        let least = limits.write_time.as_secs() * limits.body_rate;
        Self { stream, patience: limits.write_time, least, waiting: None, taken: 0 }
    }

    fn check_progress(
        &mut self,
        cx: &mut Context<'_>,
        progress: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(taken)) = &progress {
            self.taken += *taken as u64;
        }
        if progress.is_ready() {
            return progress;
        }
        self.poll_deadline(cx)
    }

    fn poll_deadline<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        if std::mem::take(&mut self.taken) < self.least {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        // Fast enough: start the next interval.
        self.waiting = None;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Everything was read: the next write starts a new interval.
    fn reset_deadline(&mut self) {
        self.waiting = None;
        self.taken = 0;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_progress(cx, progress)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(done) => {
                self.reset_deadline();
                Poll::Ready(done)
            }
            Poll::Pending => self.poll_deadline(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => self.poll_deadline(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.check_progress(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
