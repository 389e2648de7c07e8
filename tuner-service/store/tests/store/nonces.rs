//! A request is read once by all replicas.

use std::time::Duration;

use tokio::task::JoinSet;

use crate::support::in_database;

const NONCE: &str = "0123456789abcdef0123456789abcdef";

#[tokio::test]
async fn of_all_who_read_a_request_one_is_the_first() {
    in_database(|database| async move {
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
    })
    .await;
}

#[tokio::test]
async fn a_nonce_is_kept_for_its_time() {
    in_database(|database| async move {
        let store = database.store(1);
        store.is_first_reading(NONCE).await.unwrap();
        store.forget_nonces(Duration::from_mins(1)).await.unwrap();
        assert!(!store.is_first_reading(NONCE).await.unwrap());
        store.forget_nonces(Duration::ZERO).await.unwrap();
        assert!(store.is_first_reading(NONCE).await.unwrap());
    })
    .await;
}
