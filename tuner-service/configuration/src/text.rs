//! The text of a file that people write, however their editor saves it.

use std::io;
use std::path::Path;

/// The reason why a file's bytes are not the expected text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    /// Each character has two bytes, as some editors and spreadsheets of Windows save a file.
    #[error(
        "it is in UTF-16, and has to be in UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`, or save it anew \
         in UTF-8"
    )]
    Utf16,
    /// A byte of another encoding, most often of Latin-1.
    #[error(
        "line {line} is not in UTF-8, as the whole file has to be: convert it, from Latin-1 with \
         `iconv -f ISO-8859-1 -t UTF-8`, or save it anew in UTF-8"
    )]
    NotUtf8 {
        /// The line of the first such byte, from 1.
        line: usize,
    },
}

impl From<NoText> for io::Error {
    fn from(error: NoText) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Reads a file that people write. It must be UTF-8, with or without a byte-order mark.
///
/// # Errors
///
/// With the system's error; of the kind [`InvalidData`](io::ErrorKind::InvalidData), with
/// [`NoText`], if the file is in another encoding.
pub fn read_text(path: &Path) -> io::Result<String> {
    Ok(text(std::fs::read(path)?)?)
}

/// The text of a file's bytes, without the byte-order mark with which some editors begin it.
///
/// # Errors
///
/// If the bytes are not in UTF-8.
pub fn text(bytes: Vec<u8>) -> Result<String, NoText> {
    if is_utf16(&bytes) {
        return Err(NoText::Utf16);
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let (before, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        NoText::NotUtf8 {
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        }
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

/// Returns true for UTF-16, by its byte-order mark, or without one by the zero that is half of an
/// ASCII character.
fn is_utf16(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read_text(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        for (bytes, text) in [
            ("a = 'ü'\r\n".as_bytes(), "a = 'ü'\r\n"),
            (b"\xef\xbb\xbfa", "a"),
            (b"\xef\xbb\xbf", ""),
            (b"", ""),
        ] {
            assert_eq!(read(bytes).unwrap(), text);
        }
    }

    #[test]
    fn another_encoding_is_named_with_its_line_and_the_cure() {
        let told = read(b"one\r\ntwo\nGr\xf6\xdfe\n").unwrap_err();
        assert!(told.starts_with("line 3 is not in UTF-8"), "{told}");
        assert!(told.contains("iconv -f ISO-8859-1 -t UTF-8"), "{told}");
        let encoded = |order: fn(u16) -> [u8; 2]| "a = 1".encode_utf16().flat_map(order).collect();
        let (little, big): (Vec<u8>, Vec<u8>) =
            (encoded(u16::to_le_bytes), encoded(u16::to_be_bytes));
        for bytes in [
            [b"\xff\xfe".as_slice(), &little].concat(),
            [b"\xfe\xff".as_slice(), &big].concat(),
            little,
            big,
        ] {
            let told = read(&bytes).unwrap_err();
            assert!(told.contains("it is in UTF-16"), "{told}");
            assert!(told.contains("iconv -f UTF-16"), "{told}");
        }
        let missing = read_text(Path::new("/nowhere/a.toml")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
