//! Paths in URLs.

use ibi_protocol::FilePath;
use percent_encoding::{AsciiSet, CONTROLS, PercentEncode, percent_encode};

/// Characters to escape in a URL path: those that RFC 3986 does not allow there, and those that the
/// list of pairs reserves.
const URL_PATH_ESCAPE_SET: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A path, percent-encoded for a URL.
pub(crate) fn encode_file_path(path: &FilePath) -> String {
    percent_encode(path.as_bytes(), URL_PATH_ESCAPE_SET).to_string()
}

/// Bytes of a path, percent-encoded for a URL.
pub(crate) fn encode_path_bytes(bytes: &[u8]) -> PercentEncode<'_> {
    percent_encode(bytes, URL_PATH_ESCAPE_SET)
}
