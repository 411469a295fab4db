//! Read-only access to the index file.

/// A URI that makes SQLite read the file as is.
pub(super) fn immutable_uri(path: &str) -> String {
    format!("file:{}?immutable=1", escaped(path))
}

/// A URI that makes SQLite read the file and its write-ahead log, and write no shared memory: it
/// keeps the log's index in memory of its own.
pub(super) fn unshared_uri(path: &str) -> String {
    format!("file:{}?readonly_shm=1", escaped(path))
}

fn escaped(path: &str) -> String {
    path.replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

/// Whether an error means that the file or its companions cannot be written.
pub(super) fn is_write_failure(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure};
    let code = error.sqlite_error_code();
    code.is_some_and(|code| {
        matches!(code, CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure)
    })
}
