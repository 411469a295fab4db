//! Commands on a folder that is on line: they ask its server for the Archive, work as they always do, and give it back
//! (`docs/adr/0007-commands-borrow-the-archive.md`).
//!
//! The server listens at `service/socket`. Whoever connects is told `yours` when the Archive is free, and has it until the
//! connection ends, however it ends.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::service::Desk;

const YOURS: &str = "yours\n";

/// The Archive, borrowed from its server until this is dropped.
#[derive(Debug)]
pub struct Borrowed(#[expect(dead_code, reason = "the server waits for its end")] UnixStream);

/// Asks the server of a folder for its Archive; nothing if no server has it.
pub fn borrow(data: &Path) -> io::Result<Option<Borrowed>> {
    let Ok(folder) = File::open(data.join("service")) else { return Ok(None) };
    let stream = match UnixStream::connect(short(&folder)) {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut line = String::new();
    match BufReader::new(&stream).read_line(&mut line) {
        // Killed meanwhile, it has nothing any more.
        Ok(0) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        read => drop(read?),
    }
    if line != YOURS {
        return Err(io::Error::other("the server of this folder does not give it away"));
    }
    Ok(Some(Borrowed(stream)))
}

/// Whether a server has the folder.
pub fn is_on_line(data: &Path) -> bool {
    let Ok(folder) = File::open(data.join("service")) else { return false };
    UnixStream::connect(short(&folder)).is_ok()
}

/// Nobody listens: the server is down, however it went.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The socket by a name that is always short enough for the system.
fn short(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/socket", folder.as_raw_fd()))
}

/// Where commands ask for the Archive: there from the moment that this is made, so that none finds it taken and nobody to ask.
#[derive(Debug)]
pub struct Lender {
    desk: Arc<Desk>,
    listener: tokio::net::UnixListener,
}

/// Gets ready to lend the Archive to commands.
pub fn lender(desk: Arc<Desk>) -> io::Result<Lender> {
    let place = desk.data().join("service");
    fs::create_dir_all(&place)?;
    let folder = File::open(&place)?;
    // Nobody else has the Archive: what lies there was left.
    match fs::remove_file(place.join("socket")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = tokio::net::UnixListener::bind(short(&folder))?;
    fs::set_permissions(place.join("socket"), Permissions::from_mode(0o600))?;
    Ok(Lender { desk, listener })
}

/// Lends the Archive to commands, one after the other, until the process ends.
pub async fn lend(Lender { desk, listener }: Lender) -> io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let Some(back) = desk.lend().await else { return Ok(()) };
        tracing::info!("a command has the Archive");
        if stream.write_all(YOURS.as_bytes()).await.is_ok() {
            // Its end is all that is waited for.
            let mut end = [0];
            let _ = stream.read(&mut end).await;
        }
        drop(back);
        tracing::info!("the command gave it back");
    }
}
