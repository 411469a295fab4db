//! The media type of a file: from its name, and, of a text that is UTF-8, from its bytes.

use std::io::{self, Read};

/// Appended for a text in UTF-8; the charset of other texts is unknown.
const UTF8_CHARSET_PARAMETER: &str = "; charset=utf-8";

/// A reader that detects UTF-8 on the way, if the name is that of a text.
pub(crate) struct MediaTypeReader<R> {
    inner: R,
    kind: String,
    text: Option<Utf8Check>,
}

impl<R: Read> MediaTypeReader<R> {
    pub(crate) fn new(path: &str, inner: R) -> Self {
        let kind = of_name(path);
        let text = kind.starts_with("text/").then(Utf8Check::default);
        Self { inner, kind, text }
    }

    /// The media type, after everything was read.
    pub(crate) fn finish(self) -> (R, String) {
        let is_utf8 = self.text.is_some_and(|text| text.is_utf8());
        let media = if is_utf8 { self.kind + UTF8_CHARSET_PARAMETER } else { self.kind };
        (self.inner, media)
    }
}

impl<R: Read> Read for MediaTypeReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if let Some(text) = &mut self.text {
            text.update(&buffer[..read]);
        }
        Ok(read)
    }
}

/// The media type by file name.
pub(crate) fn of_name(path: &str) -> String {
    mime_guess::from_path(path).first_or_octet_stream().to_string()
}

/// The type without parameters such as the charset.
pub(crate) fn without_parameters(media: &str) -> &str {
    media.split(';').next().unwrap_or_default().trim_end()
}

/// Detects incrementally whether bytes are a text in UTF-8.
#[derive(Debug, Default)]
struct Utf8Check {
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
    is_other: bool,
}

impl Utf8Check {
    fn update(&mut self, mut bytes: &[u8]) {
        while !self.is_other && !self.begun.is_empty() {
            let Some((&next, rest)) = bytes.split_first() else { return };
            (self.begun, bytes) = ([&self.begun[..], &[next]].concat(), rest);
            match std::str::from_utf8(&self.begun) {
                Ok(_) => self.begun.clear(),
                Err(error) => self.is_other = error.error_len().is_some(),
            }
        }
        if self.is_other {
            return;
        }
        self.is_other = bytes.iter().copied().any(is_binary_byte);
        if let Err(error) = std::str::from_utf8(bytes) {
            self.is_other |= error.error_len().is_some();
            self.begun = bytes[error.valid_up_to()..].to_vec();
        }
    }

    fn is_utf8(&self) -> bool {
        !self.is_other && self.begun.is_empty()
    }
}

/// Bytes that UTF-8 may have, but texts in it have not: UTF-16 has NUL, ISO 2022 has escapes, and
/// both are valid UTF-8 by chance.
fn is_binary_byte(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1f | 0x7f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn media(path: &str, bytes: &[u8]) -> String {
        let mut reader = MediaTypeReader::new(path, bytes);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        reader.finish().1
    }

    #[test]
    fn a_text_says_that_it_is_utf_8_and_nothing_else() {
        assert_eq!(media("a.txt", "Olá, ação 😀\r\n\t".as_bytes()), "text/plain; charset=utf-8");
        assert_eq!(media("a/b.HTML", b"<p>plain"), "text/html; charset=utf-8");
        assert_eq!(media("a.csv", b""), "text/csv; charset=utf-8");
        assert_eq!(media("a.txt", b"Ol\xe1"), "text/plain", "ISO 8859-1");
        assert_eq!(media("a.txt", b"Ol\xc3"), "text/plain", "cut off");
        assert_eq!(media("a.txt", b"O\0l\0"), "text/plain", "UTF-16");
        assert_eq!(media("a.txt", b"\x1b$B$3"), "text/plain", "ISO 2022");
        assert_eq!(media("a.pdf", b"%PDF"), "application/pdf");
        assert_eq!(media("a", b"text"), "application/octet-stream");
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            text in "[ -~áç€😀]{0,20}",
            noise in prop::collection::vec(any::<u8>(), 0..3),
            size in 1_usize..7,
        ) {
            let bytes = [text.as_bytes(), &noise].concat();
            let mut check = Utf8Check::default();
            bytes.chunks(size).for_each(|piece| check.update(piece));
            let whole = std::str::from_utf8(&bytes).is_ok() && !bytes.iter().copied().any(is_binary_byte);
            prop_assert_eq!(check.is_utf8(), whole);
        }
    }
}
