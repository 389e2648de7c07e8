//! `io-autotune report --mine`: the caller's own studies, as the service has them, on a page.

use io_autotune_protocol::RUNS_PAGE;
use nix::unistd::Uid;

use crate::arguments::StudiesOf;
use crate::people::name_of;
use crate::render::page::{Shown, page};
use crate::screen::Screen;
use crate::service::{CliError, RunsOf, Service};

/// The most runs of a study on that page: one page of the service's.
const RUNS: u32 = RUNS_PAGE;

/// The page about the caller's own studies.
pub(crate) async fn page_of_mine(service: &Service, screen: &Screen) -> Result<String, CliError> {
    let uid = Uid::effective().as_raw();
    let own = StudiesOf {
        user: Some(uid),
        ..StudiesOf::default()
    };
    let mut studies = Vec::new();
    for study in service.studies(&own).await? {
        let wanted = RunsOf::study(study.study_id, RUNS);
        studies.push(Shown {
            runs: service.runs(&wanted).await?,
            detail: service.study(study.study_id).await?,
        });
    }
    // A page has neither the width nor the colours of a terminal.
    let screen = Screen {
        width: None,
        colour: false,
        ..screen.clone()
    };
    Ok(page(&name_of(uid), &studies, &screen))
}
