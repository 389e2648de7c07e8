//! Tests of the files of the nightly report: their readers, and their agreement with the service.

mod agreement;

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use super::{ADMIN, ALICE, BOB, OPERATOR, REPORT_READER, TestService};

/// The files that the report has each night.
const FILES: [&str; 5] = [
    "index.html",
    "report.json",
    "studies.csv",
    "groups.csv",
    "mail.txt",
];

/// A service that serves the reports of a directory, which is not there yet.
async fn serving() -> (TestService, PathBuf) {
    let service = TestService::new().await;
    let directory = service.files.path("report");
    service
        .reload(&format!("[report]\ndirectory = {directory:?}\n"))
        .await;
    (service, directory)
}

/// Makes a night, with a text in each file.
fn night(directory: &std::path::Path, name: &str) {
    let night = directory.join(name);
    std::fs::create_dir_all(&night).unwrap();
    for file in FILES {
        std::fs::write(night.join(file), format!("{file} of {name}")).unwrap();
    }
    // As the report does: the new link takes the old one's place.
    let draft = directory.join(".latest");
    symlink(name, &draft).unwrap();
    std::fs::rename(&draft, directory.join("latest")).unwrap();
}

#[tokio::test]
async fn each_file_of_the_latest_night_is_served_with_the_nights_name() {
    let (service, directory) = serving().await;
    night(&directory, "2026-11-20");
    for uid in [REPORT_READER, OPERATOR, ADMIN] {
        for file in FILES {
            let answer = service.user(uid).get(&format!("/v1/report/{file}")).await;
            let content = format!("{file} of 2026-11-20");
            assert_eq!(
                answer.ok(),
                json!({ "night": "2026-11-20", "content": content })
            );
        }
    }
}

/// Attack (others): A user who may not read the report asks for it.
/// Outcome: It is refused, whether there is one or not.
#[tokio::test]
async fn who_may_not_read_the_report_does_not_learn_whether_there_is_one() {
    let (service, directory) = serving().await;
    let before = service
        .user(ALICE)
        .get("/v1/report/index.html")
        .await
        .forbidden();
    night(&directory, "2026-11-20");
    assert_eq!(
        service
            .user(ALICE)
            .get("/v1/report/index.html")
            .await
            .forbidden(),
        before
    );
    assert_eq!(
        service
            .user(ALICE)
            .get("/v1/report/passwd")
            .await
            .forbidden(),
        before
    );
}

/// Adds pages of users' own to a night.
fn own_pages(directory: &std::path::Path, night: &str, owners: &[u32]) {
    let users = directory.join(night).join("users");
    std::fs::create_dir(&users).unwrap();
    for uid in owners {
        std::fs::write(users.join(format!("{uid}.html")), format!("of {uid}")).unwrap();
    }
}

/// Attack (others): A user asks for the page of another user's studies.
/// Outcome: Nothing in the request names a page: each caller has their own, and an admin has no
/// other.
#[tokio::test]
async fn each_user_has_the_page_of_their_own_studies_and_no_other() {
    let (service, directory) = serving().await;
    let mine = async |uid| service.user(uid).get("/v1/report/mine").await;
    let none = mine(ALICE).await.refused(404, "no_report");
    assert!(none.contains("io-autotune status"), "{none}");
    night(&directory, "2026-11-20");
    own_pages(&directory, "2026-11-20", &[ALICE, ADMIN]);
    for uid in [ALICE, ADMIN] {
        let content = format!("of {uid}");
        let expected = json!({ "night": "2026-11-20", "content": content });
        assert_eq!(mine(uid).await.ok(), expected);
    }
    assert_eq!(mine(BOB).await.refused(404, "no_report"), none);
    for file in [format!("{ALICE}.html"), format!("users%2F{ALICE}.html")] {
        let path = format!("/v1/report/{file}");
        service.user(ADMIN).get(&path).await.bad_request();
    }
    for path in [
        format!("/v1/report/users/{ALICE}.html"),
        format!("/v1/report/mine/{ALICE}"),
    ] {
        assert_eq!(service.user(ADMIN).get(&path).await.status, 404);
    }
}

#[tokio::test]
async fn a_service_without_a_report_says_what_would_name_one() {
    let service = TestService::new().await;
    let refused = service
        .user(ADMIN)
        .get("/v1/report/index.html")
        .await
        .refused(404, "no_report");
    assert_eq!(
        refused,
        "the service serves no report: [report] directory of service.toml names none"
    );
}

#[tokio::test]
async fn before_the_first_night_and_of_a_missing_file_there_is_no_report() {
    let (service, directory) = serving().await;
    let said = "no report has been made yet, or none with this file";
    let get = async |file: &str| service.user(ADMIN).get(&format!("/v1/report/{file}")).await;
    assert_eq!(get("index.html").await.refused(404, "no_report"), said);
    night(&directory, "2026-11-20");
    std::fs::remove_file(directory.join("2026-11-20/mail.txt")).unwrap();
    assert_eq!(get("mail.txt").await.refused(404, "no_report"), said);
    get("index.html").await.ok();
    // A night that was removed, to which the link still leads.
    std::fs::remove_dir_all(directory.join("2026-11-20")).unwrap();
    assert_eq!(get("index.html").await.refused(404, "no_report"), said);
}

#[tokio::test]
async fn the_next_night_takes_the_place_of_the_one_before() {
    let (service, directory) = serving().await;
    for name in ["2026-11-20", "2026-11-21"] {
        night(&directory, name);
        let answer = service.user(ADMIN).get("/v1/report/report.json").await.ok();
        let content = format!("report.json of {name}");
        assert_eq!(answer, json!({ "night": name, "content": content }));
    }
}

/// Attack (others): A reader of the report asks for another file, by a path out of its directory.
/// Outcome: There are five files and no other.
#[tokio::test]
async fn nothing_beside_the_reports_five_files_is_served() {
    let (service, directory) = serving().await;
    night(&directory, "2026-11-20");
    std::fs::write(directory.join("2026-11-20/secret"), "secret").unwrap();
    std::fs::write(directory.join("secret"), "secret").unwrap();
    for file in [
        "secret",
        "..%2Fsecret",
        "..%2F2026-11-20%2Findex.html",
        "INDEX.HTML",
        ".",
    ] {
        let refused = service
            .user(REPORT_READER)
            .get(&format!("/v1/report/{file}"))
            .await
            .bad_request();
        assert!(refused.contains("index.html"), "{file}: {refused}");
    }
    for path in [
        "/v1/report/",
        "/v1/report",
        "/v1/report/../secret",
        "/v1/report/a/b",
    ] {
        let answer = service.user(REPORT_READER).get(path).await;
        assert_eq!(answer.status, 404, "{answer}");
    }
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_is_followed_by_its_last_name_alone() {
    let (service, directory) = serving().await;
    let elsewhere = service.files.path("2026-11-22");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("index.html"), "not a night").unwrap();
    std::fs::create_dir(&directory).unwrap();
    symlink(&elsewhere, directory.join("latest")).unwrap();
    let get = service.user(ADMIN).get("/v1/report/index.html").await;
    get.refused(404, "no_report");
}

#[tokio::test]
async fn a_file_that_cannot_be_served_is_told_to_its_reader_and_harms_nothing() {
    let (service, directory) = serving().await;
    night(&directory, "2026-11-20");
    let large = std::fs::File::create(directory.join("2026-11-20/index.html")).unwrap();
    large.set_len(32 * 1024 * 1024 + 1).unwrap();
    std::fs::write(directory.join("2026-11-20/mail.txt"), [0x66, 0xff, 0x66]).unwrap();
    std::fs::remove_file(directory.join("2026-11-20/groups.csv")).unwrap();
    std::fs::create_dir(directory.join("2026-11-20/groups.csv")).unwrap();
    for file in ["index.html", "mail.txt", "groups.csv"] {
        let answer = service.user(ADMIN).get(&format!("/v1/report/{file}")).await;
        let refused = answer.refused(500, "unreadable_report");
        assert!(
            !refused.contains(&directory.display().to_string()),
            "{refused}"
        );
    }
    service.user(ADMIN).get("/v1/report/report.json").await.ok();
}

#[tokio::test]
async fn what_stands_in_the_place_of_the_link_is_no_report() {
    let (service, directory) = serving().await;
    std::fs::create_dir_all(directory.join("latest")).unwrap();
    std::fs::write(directory.join("latest/index.html"), "no night").unwrap();
    let answer = service.user(ADMIN).get("/v1/report/index.html").await;
    answer.refused(500, "unreadable_report");
}
