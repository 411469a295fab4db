//! A connection whose other end must keep taking what it asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::Limits;

/// Cut off when too little of what is written is taken.
pub(crate) struct Taken<S> {
    stream: S,
    patience: Duration,
    /// Bytes that must be taken within that time, while more wait.
    least: u64,
    waiting: Option<Pin<Box<Sleep>>>,
    taken: u64,
}

impl<S> Taken<S> {
    pub(crate) fn new(stream: S, limits: &Limits) -> Self {
        let least = limits.write_time.as_secs() * limits.body_rate;
        Self { stream, patience: limits.write_time, least, waiting: None, taken: 0 }
    }

    fn judge(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(taken)) = &progress {
            self.taken += *taken as u64;
        }
        if progress.is_ready() {
            return progress;
        }
        self.wait(cx)
    }

    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        if std::mem::take(&mut self.taken) < self.least {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        // Fast enough: the next stretch.
        self.waiting = None;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// All is taken: whatever comes next is judged anew.
    fn rest(&mut self) {
        self.waiting = None;
        self.taken = 0;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Taken<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Taken<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, progress)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(done) => {
                self.rest();
                Poll::Ready(done)
            }
            Poll::Pending => self.wait(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => self.wait(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.judge(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
