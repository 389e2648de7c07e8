//! A run from its start to its verdict.

use super::{ALICE, TestService};

#[tokio::test]
async fn a_run_that_completed_counts_and_its_study_is_its_users() {
    let service = TestService::new().await;
    let run = service.job(ALICE, "app=ocean").runs(&service, 12.5).await;
    assert_eq!(run["state"], "counted", "{run}");
    assert_eq!(run["elapsed"], 12.5);
    let studies = service.user(ALICE).get("/v1/studies").await.ok();
    assert_eq!(studies[0]["application"], "ocean", "{studies}");
}
