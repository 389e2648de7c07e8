//! The exchange: JSON lines in, JSON lines out.

use std::io::{self, BufRead, Read, Write};

use io_autotune_optimize::session::Session;
use serde_json::json;

use super::error::OptimizeError;
use super::storage::Storage;

/// The most bytes of a line.
const LONGEST: u64 = 1 << 20;

/// Answers each line of `input` until it ends; what happened is stored before it is answered. Errs
/// when reading, storing or writing fails; a closed output is no error.
pub(super) fn exchange(
    session: &mut Session,
    storage: &mut Storage,
    mut input: impl BufRead,
    mut output: impl Write,
) -> Result<(), OptimizeError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        input.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = if line.len() as u64 == LONGEST && !line.ends_with(b"\n") {
            input.skip_until(b'\n')?;
            json!({"error": format!("the line is longer than {LONGEST} bytes: write one request on a line")})
        } else {
            // What redirects a file may begin it with a byte-order mark.
            let text = String::from_utf8_lossy(&line);
            session.answer(text.trim_start_matches('\u{feff}').trim())
        };
        storage.keep(session.take_records())?;
        let written = writeln!(output, "{answer}").and_then(|()| output.flush());
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use io_autotune_engine::MethodName;
    use io_autotune_optimize::SpaceFile;

    use super::*;

    #[test]
    fn every_line_has_an_answer_whatever_it_holds() {
        let text = r#"{"parameters": [{"name": "a", "kind": "int", "values": [1, 2, 3]}]}"#;
        let file = SpaceFile::parse(text, Path::new("a.json")).unwrap();
        let mut session = Session::new(file, 5, 1, MethodName::SurrogateGenetic);
        let mut input = b"\xef\xbb\xbf{\"ask\":true}\r\n\xff\xfe\n\n".to_vec();
        input.extend(vec![b' '; 3 << 20]);
        input.extend(b"\n{\"tell\":{\"id\":1,\"elapsed\":2}}\n{\"recommend\":true}");
        let mut output = Vec::new();
        let mut nowhere = Storage::nowhere();
        exchange(&mut session, &mut nowhere, input.as_slice(), &mut output).unwrap();
        let answers = String::from_utf8(output).unwrap();
        let answers: Vec<&str> = answers.lines().collect();
        assert_eq!(answers.len(), 6);
        assert!(answers[0].contains(r#""id":1"#));
        assert!(answers[1..4].iter().all(|answer| answer.contains("error")));
        assert!(answers[3].contains("longer than"), "{}", answers[3]);
        assert_eq!(answers[4], r#"{"ok":true}"#);
        assert!(answers[5].contains(r#""n":1"#));
    }
}
