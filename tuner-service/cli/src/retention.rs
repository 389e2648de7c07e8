//! `io-autotune admin retention`: removes old runs that no study needs.

use io_autotune_protocol::{RetentionAnswer, RetentionRequest};

use crate::arguments::Change;
use crate::question::ask;
use crate::screen::Screen;
use crate::service::{CliError, Service};
use crate::{Answer, output_of};

pub(crate) async fn remove(
    service: &Service,
    older_than_days: Option<u32>,
    change: &Change,
    screen: &Screen,
) -> Result<Answer, CliError> {
    let request = RetentionRequest {
        older_than_days,
        dry_run: true,
        why: change.why(),
    };
    let would = if change.yes && !change.dry_run {
        None
    } else {
        Some(service.retention(&request).await?)
    };
    if let Some(would) = &would {
        if change.dry_run {
            return output_of(change.output.json, would, |would| {
                format!("dry run: {}", told(would, "would be removed", screen))
            });
        }
        let what = format!(
            "removal of what is older than {} days",
            would.older_than_days
        );
        let list = told(would, "would be removed", screen);
        ask(&what, "; there is no undo", &list)?;
    }
    let request = RetentionRequest {
        dry_run: false,
        ..request
    };
    let mut removed = service.retention(&request).await?;
    while removed.more {
        add(&mut removed, service.retention(&request).await?);
    }
    output_of(change.output.json, &removed, |removed| {
        format!("done: {}", told(removed, "were removed", screen))
    })
}

fn add(sum: &mut RetentionAnswer, more: RetentionAnswer) {
    sum.removed += more.removed;
    sum.more = more.more;
}

fn told(answer: &RetentionAnswer, done: &str, screen: &Screen) -> String {
    let (days, removed) = (answer.older_than_days, &answer.removed);
    let (Some(from), Some(to)) = (removed.from, removed.to) else {
        return format!("no run is old and not needed: older than {days} days.\n");
    };
    format!(
        "{} runs of epochs that are over {done}, and of {} other runs the reports and what they were decided from.\n\
         There is no undo of a removal.\n\n\
         older than    {days} days\n\
         started       {} to {}\n\
         reports       {}\n\
         records       {} of Slurm's outcomes\n\
         judgements    {}\n",
        removed.runs,
        removed.trimmed,
        screen.exact(from),
        screen.exact(to),
        removed.reports,
        removed.outcomes,
        removed.judgements,
    )
}

#[cfg(test)]
mod tests {
    use io_autotune_model::Removed;

    use super::*;

    fn removed(runs: u64, at: Option<i64>) -> RetentionAnswer {
        let at = at.map(|second| jiff::Timestamp::from_second(second).unwrap());
        RetentionAnswer {
            older_than_days: 400,
            removed: Removed {
                runs,
                judgements: runs,
                reports: 2 * runs,
                outcomes: runs,
                trimmed: 1,
                from: at,
                to: at,
            },
            more: at.is_some(),
        }
    }

    #[test]
    fn batches_add_up_and_the_last_one_says_whether_there_are_more() {
        let mut all = removed(3, Some(7));
        for more in [removed(2, Some(5)), removed(0, None)] {
            add(&mut all, more);
        }
        let second = |at: Option<jiff::Timestamp>| at.unwrap().as_second();
        let sum = &all.removed;
        assert_eq!((sum.runs, sum.reports, sum.trimmed), (5, 10, 3));
        assert_eq!((second(sum.from), second(sum.to)), (5, 7));
        assert!(!all.more);
        let text = told(&all, "were removed", &Screen::plain());
        assert!(
            text.starts_with("5 runs of epochs that are over were removed, and of 3 other"),
            "{text}"
        );
        let nothing = told(&removed(0, None), "were removed", &Screen::plain());
        assert!(nothing.contains("no run is old"), "{nothing}");
    }
}
