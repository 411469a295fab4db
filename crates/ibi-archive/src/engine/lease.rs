//! Leases for commands that run on a folder while its server is online: a command asks the server
//! for the Archive, works as usual and returns it (`docs/adr/0007-commands-borrow-the-archive.md`).
//!
//! The server listens on `service/socket`. It sends `yours` to a client when the Archive is free.
//! The client holds the lease until the connection ends, for whatever reason.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ibi_http::descriptors::{SpareDescriptor, is_exhausted};
use ibi_http::server::AcceptRetry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::ArchiveEngine;

const LEASE_GRANTED_MESSAGE: &str = "yours\n";

/// A lease on the Archive, held until dropped.
#[derive(Debug)]
pub struct EngineLease(#[expect(dead_code, reason = "the server waits for its end")] UnixStream);

/// Asks the folder's server for the Archive; `None` if no server runs.
pub fn acquire_lease(data: &Path) -> io::Result<Option<EngineLease>> {
    let Ok(folder) = File::open(data.join("service")) else { return Ok(None) };
    let stream = match UnixStream::connect(socket_path(&folder)) {
        Ok(stream) => stream,
        Err(error) if is_server_down(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut line = String::new();
    match BufReader::new(&stream).read_line(&mut line) {
        // The server was killed meanwhile, so it no longer holds the Archive.
        Ok(0) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        read => drop(read?),
    }
    if line != LEASE_GRANTED_MESSAGE {
        return Err(io::Error::other("the server refused the lease"));
    }
    Ok(Some(EngineLease(stream)))
}

/// Whether a server runs on the folder.
pub fn is_served(data: &Path) -> bool {
    let Ok(folder) = File::open(data.join("service")) else { return false };
    UnixStream::connect(socket_path(&folder)).is_ok()
}

/// Nobody listens: the server has stopped or crashed.
fn is_server_down(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The socket's path through `/proc`, which always fits the system's length limit.
fn socket_path(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/socket", folder.as_raw_fd()))
}

/// The lease server. Bound on construction: a held lock always has a lease server.
#[derive(Debug)]
pub struct EngineLeaseServer {
    desk: Arc<ArchiveEngine>,
    listener: tokio::net::UnixListener,
}

/// Between two attempts to bind the socket on a disk that cannot be written.
const BINDING_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Binds the socket as soon as the disk can be written, and grants leases from then on. Until then
/// commands cannot change the Archive either.
pub async fn serve_leases_later(desk: Arc<ArchiveEngine>) {
    loop {
        tokio::time::sleep(BINDING_RETRY_INTERVAL).await;
        // Another server may have been started meanwhile.
        if is_served(desk.data()) {
            continue;
        }
        if let Ok(server) = bind_lease_server(Arc::clone(&desk)) {
            return serve_leases(server).await;
        }
    }
}

/// Whether an error of [`bind_lease_server`] means that the disk is full or read-only.
pub fn is_unwritable(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull)
}

/// Binds the lease server's socket.
pub fn bind_lease_server(desk: Arc<ArchiveEngine>) -> io::Result<EngineLeaseServer> {
    let place = desk.data().join("service");
    fs::create_dir_all(&place)?;
    let folder = File::open(&place)?;
    // This process holds the Archive, so an existing socket is stale.
    match fs::remove_file(place.join("socket")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = tokio::net::UnixListener::bind(socket_path(&folder))?;
    fs::set_permissions(place.join("socket"), Permissions::from_mode(0o600))?;
    Ok(EngineLeaseServer { desk, listener })
}

/// Grants leases one at a time until the process ends. Reserves a descriptor, so that commands can
/// connect even when the server has run out of them.
pub async fn serve_leases(EngineLeaseServer { desk, listener }: EngineLeaseServer) {
    let (mut spare, mut retry) = (SpareDescriptor::hold(), AcceptRetry::default());
    loop {
        let mut stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                if !is_exhausted(&error) || !spare.release() {
                    retry.wait_after(&error).await;
                }
                continue;
            }
        };
        let Some(back) = desk.lease_archive().await else { return };
        tracing::info!("lease granted");
        if stream.write_all(LEASE_GRANTED_MESSAGE.as_bytes()).await.is_ok() {
            // Wait only for the connection to end.
            let mut end = [0];
            let _ = stream.read(&mut end).await;
        }
        drop((stream, back));
        spare.hold_again();
        tracing::info!("lease returned");
    }
}
