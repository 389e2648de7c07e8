//! `io-autotune transfer export` and `import`: studies out of one service, and into another.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use io_autotune_configuration::text;
use io_autotune_protocol::signature::Nonce;
use io_autotune_protocol::{
    IMPORT_CHUNK, IMPORT_CHUNKS, ImportAnswer, ImportChunk, ImportRequest, ImportStep, export_end,
    export_header, shown_json,
};

use crate::arguments::{Change, StudiesOf};
use crate::people::called;
use crate::question::ask;
use crate::render::columns::{Cell, Column, Columns};
use crate::screen::Screen;
use crate::service::{CliError, Service};
use crate::targets::{Named, Target};
use crate::{Answer, output_of, say};

/// The most bytes of a file. A piece ends between characters, and may be some bytes short.
const MOST: u64 = (IMPORT_CHUNK as u64 - 4) * IMPORT_CHUNKS as u64;

/// Writes studies to a file, or to standard output. `None`: all that the caller may see.
pub(crate) async fn export(
    service: &Service,
    target: Option<&Target>,
    output: Option<&Path>,
) -> Result<Answer, CliError> {
    let named = match target {
        Some(target) => Some(service.named(target).await?),
        None => None,
    };
    let wanted = named.as_ref().map(StudiesOf::named).unwrap_or_default();
    let studies = service.studies(&wanted).await?;
    if studies.is_empty() {
        return Err(match named {
            Some(Named::Application(name)) => service.no_study(&name).await,
            Some(Named::Study(study)) => CliError::NoStudyOfNumber(study),
            None => CliError::Usage("there is no study to export".to_owned()),
        });
    }
    let clusters: BTreeSet<&str> = studies
        .iter()
        .filter_map(|one| one.cluster.as_deref())
        .collect();
    if clusters.len() > 1 {
        return Err(CliError::Usage(format!(
            "a file has the studies of one cluster: name it, of {}, by --cluster",
            Vec::from_iter(clusters).join(", ")
        )));
    }
    // An existing file is complete, because it gets its name last.
    let unfinished = output.map(|path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".unfinished");
        PathBuf::from(name)
    });
    let mut out: Box<dyn Write> = match &unfinished {
        Some(path) => Box::new(BufWriter::new(File::create(path).map_err(unwritten(path))?)),
        None => Box::new(std::io::stdout().lock()),
    };
    let ids: Vec<i64> = studies.iter().map(|study| study.study_id).collect();
    let written = write_all(service, &ids, out.as_mut()).await;
    drop(out);
    if let (Some(unfinished), Some(path)) = (&unfinished, output) {
        match written {
            Ok(()) => std::fs::rename(unfinished, path).map_err(unwritten(path))?,
            Err(error) => {
                let _ = std::fs::remove_file(unfinished);
                return Err(error);
            }
        }
    } else {
        match written {
            // The reader, for example `head`, has read enough.
            Err(CliError::Exchange(error)) if error.kind() == ErrorKind::BrokenPipe => {
                return Ok(String::new().into());
            }
            other => other?,
        }
    }
    let in_flight: i64 = studies.iter().map(|study| study.in_flight).sum();
    say(&exported(studies.len(), in_flight));
    Ok(String::new().into())
}

async fn write_all(service: &Service, ids: &[i64], out: &mut dyn Write) -> Result<(), CliError> {
    let mut begun = false;
    for study_id in ids {
        let mut after = None;
        loop {
            let page = service.export(*study_id, after.as_deref()).await?;
            if !begun {
                writeln!(out, "{}", export_header(page.version))?;
                begun = true;
            }
            for line in page.lines {
                // Names and reasons come from other people, and the output may be a terminal.
                writeln!(out, "{}", shown_json(&line))?;
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    writeln!(out, "{}", export_end(ids.len() as u64))?;
    Ok(out.flush()?)
}

fn exported(studies: usize, in_flight: i64) -> String {
    let left_out = match in_flight {
        0 => String::new(),
        1 => "; 1 run in flight is left out".to_owned(),
        many => format!("; {many} runs in flight are left out"),
    };
    let studies = match studies {
        1 => "1 study".to_owned(),
        many => format!("{many} studies"),
    };
    format!("exported {studies}{left_out}")
}

fn unwritten(path: &Path) -> impl Fn(std::io::Error) -> CliError + '_ {
    |source| CliError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// Sends a file in pieces, has it checked as a whole, and then imported.
pub(crate) async fn import(
    service: &Service,
    file: &Path,
    skip_existing: bool,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let text = read(file)?;
    let pieces = pieces(&text, IMPORT_CHUNK);
    let name = Nonce::fresh().map_err(std::io::Error::other)?;
    let upload = name.as_str();
    let request = |step| ImportRequest {
        chunks: u32::try_from(pieces.len()).unwrap_or(u32::MAX),
        step,
        skip_existing,
        cluster: service.cluster().map(str::to_owned),
        why: change.why(),
    };
    let done = carry_out(service, upload, &pieces, &request, change, screen).await;
    // A successful import has removed the pieces itself.
    if !matches!(done, Ok((_, true))) {
        let _ = service
            .end_import(upload, &request(ImportStep::Discard))
            .await;
    }
    let (answer, imported) = done?;
    output_of(change.output.json, &answer, |answer| {
        let said = match imported {
            true => "imported. There is no undo of an import.",
            false => "dry run: would be imported. There is no undo of an import.",
        };
        format!("{said}\n\n{}", list(answer).text(screen))
    })
}

async fn carry_out(
    service: &Service,
    upload: &str,
    pieces: &[&str],
    request: &impl Fn(ImportStep) -> ImportRequest,
    change: &Change,
    screen: &Screen,
) -> Result<(ImportAnswer, bool), CliError> {
    for (place, text) in (0..).zip(pieces) {
        let chunk = ImportChunk {
            place,
            text: (*text).to_owned(),
        };
        service.import_chunk(upload, &chunk).await?;
    }
    if change.dry_run || !change.yes {
        let look = request(ImportStep::Look);
        let would = service.end_import(upload, &look).await?;
        if change.dry_run {
            return Ok((would, false));
        }
        if would.studies.len() > 1 {
            let what = format!("import {} studies", would.studies.len());
            ask(&what, "; there is no undo", &list(&would).text(screen))?;
        }
    }
    let answer = service
        .end_import(upload, &request(ImportStep::Import))
        .await?;
    Ok((answer, true))
}

fn read(file: &Path) -> Result<String, CliError> {
    let unreadable = |source| CliError::Unreadable {
        path: file.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let most = File::open(file).map_err(unreadable)?.take(MOST + 1);
    BufReader::new(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > MOST {
        return Err(CliError::Usage(format!(
            "{} is too long for an import, which may have {} MiB: export fewer studies at once",
            file.display(),
            MOST >> 20
        )));
    }
    let text = text(bytes).map_err(|source| unreadable(source.into()))?;
    match text.is_empty() {
        true => Err(CliError::Usage(format!("{} is empty", file.display()))),
        false => Ok(text),
    }
}

/// A text in pieces of at most `most` bytes, cut between characters.
fn pieces(text: &str, most: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = rest.len().min(most);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn list(answer: &ImportAnswer) -> Columns {
    let mut list = Columns::new(vec![
        Column::right("Study"),
        Column::left("Application").least(8),
        Column::left("User").least(6),
        Column::left("Accelerator").least(6),
        Column::right("Epochs"),
        Column::right("Runs"),
        Column::left("What"),
    ]);
    for study in &answer.studies {
        let number = study.study_id.map(|id| id.to_string());
        let what = if study.skipped {
            "left out: it exists"
        } else {
            "new"
        };
        list.row([
            Cell::new(number.unwrap_or_else(|| "-".to_owned())),
            Cell::new(study.application.clone()),
            Cell::new(called(study.user.as_deref(), study.uid)),
            Cell::new(study.accelerator.clone()),
            Cell::new(study.epochs.to_string()),
            Cell::new(study.runs.to_string()),
            Cell::new(what),
        ]);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text_again_and_cut_no_character() {
        for text in ["", "a", "a\u{e4}\u{20ac}\u{1f600}b", &"\u{e4}".repeat(100)] {
            for most in 4..9 {
                let pieces = pieces(text, most);
                assert_eq!(pieces.concat(), text);
                assert!(pieces.iter().all(|one| (1..=most).contains(&one.len())));
            }
        }
    }

    #[test]
    fn what_is_left_out_is_said() {
        assert_eq!(exported(1, 0), "exported 1 study");
        assert_eq!(
            exported(2, 1),
            "exported 2 studies; 1 run in flight is left out"
        );
        assert!(exported(1, 3).ends_with("3 runs in flight are left out"));
    }
}
