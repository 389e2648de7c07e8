//! A request is read once by all replicas.

use std::time::Duration;

use io_autotune_store::StoreError;
use tokio::task::JoinSet;

use crate::support::{Database, Report, Start, point};

const NONCE: &str = "0123456789abcdef0123456789abcdef";

/// Attack (service): A change, a report or an import is read and sent again, to the same or another
/// replica.
/// Outcome: One is accepted.
#[tokio::test]
async fn of_all_who_read_a_request_one_is_the_first() {
    let database = Database::new().await;
    let (one, other) = (database.store(4), database.store(4));
    let mut readings = JoinSet::new();
    for index in 0..8 {
        let store = if index % 2 == 0 { &one } else { &other }.clone();
        readings.spawn(async move { store.is_first_reading(NONCE).await.unwrap() });
    }
    let firsts = readings
        .join_all()
        .await
        .into_iter()
        .filter(|is_first| *is_first);
    let firsts = firsts.count();
    assert_eq!(firsts, 1);
    let others = NONCE.replace('f', "e");
    assert!(other.is_first_reading(&others).await.unwrap());
}

/// Attack (service): A change, a report or an import is read and sent again, to the same or another
/// replica.
/// Outcome: One is accepted.
#[tokio::test]
async fn a_report_is_read_once_by_all_whatever_its_run() {
    let database = Database::new().await;
    let (one, other) = (database.store(2), database.store(2));
    let run_id = Start::of(1).search(&one, point(1)).await.run_id;
    // For a run that the report names, for one that it does not name, and for one that never
    // started.
    for (index, job_id, run_id) in [(0, 1, Some(run_id)), (1, 1, None), (2, 2, None)] {
        let mut report = Report::of(job_id);
        report.run_id = run_id;
        report.node = format!("n{index}");
        report.nonce = Some(format!("{index}{}", &NONCE[1..]));
        let first = report.deliver(&one).await.unwrap();
        assert!(!first.duplicate);
        for store in [&other, &one] {
            let again = report.deliver(store).await.unwrap_err();
            assert!(matches!(again, StoreError::Replayed { .. }), "{again}");
        }
        report.nonce = None;
        assert!(report.deliver(&other).await.unwrap().duplicate);
    }
    assert_eq!(database.number("select count(*) from reports").await, 3);
}

#[tokio::test]
async fn a_nonce_is_kept_for_its_time() {
    let database = Database::new().await;
    let store = database.store(1);
    store.is_first_reading(NONCE).await.unwrap();
    store.forget_nonces(Duration::from_mins(1)).await.unwrap();
    assert!(!store.is_first_reading(NONCE).await.unwrap());
    store.forget_nonces(Duration::ZERO).await.unwrap();
    assert!(store.is_first_reading(NONCE).await.unwrap());
}
