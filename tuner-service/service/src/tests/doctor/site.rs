//! Tests of doctor's checks of the site: its Slurm, its catalogue, its rules.

use std::path::Path;

use super::{ALICE, Checks, TestService};

#[tokio::test]
async fn a_service_without_a_source_of_outcomes_says_so() {
    let service = TestService::with("[slurm]\nsources = []\n").await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("outcome sources");
    assert_eq!(
        detail,
        "there is none: only what its node alone vouches for counts"
    );
    assert_eq!(
        fix,
        "name some in [slurm] sources of service.toml: \"jobcomp\", \"sacct\" or \"squeue\""
    );
    checks.warning("suspended jobs");
}

#[tokio::test]
async fn a_source_that_does_not_answer_is_named_with_what_to_run() {
    let service =
        TestService::with("[slurm]\nsources = [\"squeue\", \"sacct\", \"jobcomp\"]\n").await;
    service.slurm().say("sacct", "");
    let checks = Checks::of(&service).await;
    assert_eq!(checks.ok("outcome source squeue"), "answers");
    assert_eq!(checks.ok("outcome source sacct"), "answers");
    assert_eq!(checks.ok("outcome source jobcomp"), "tells by itself");
    assert_eq!(checks.ok("suspended jobs"), "a source tells of them");
    for name in ["squeue", "sacct"] {
        service.slurm().silence(name);
        let checks = Checks::of(&service).await;
        let (detail, fix) = checks.failed(&format!("outcome source {name}"));
        assert!(
            detail.contains("Unable to contact slurm controller"),
            "{detail}"
        );
        assert_eq!(
            fix,
            format!(
                "run {name} on the service's host as its account; [slurm] of service.toml says where the program \
                 and slurm.conf are"
            )
        );
    }
}

#[tokio::test]
async fn where_no_source_tells_of_suspension_one_that_does_is_named() {
    let service = TestService::with("[slurm]\nsources = [\"jobcomp\"]\n").await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("suspended jobs");
    assert_eq!(
        detail,
        "no source tells of them, so that their runs count as if they had been slow"
    );
    assert_eq!(fix, "add squeue or sacct to [slurm] sources");
}

/// `scontrol show config` under RunInJob, with these scripts.
fn run_in_job(prolog: &str, epilog: &str) -> String {
    format!("Epilog = {epilog}\nProlog[0] = {prolog}\nPrologFlags = Alloc,Contain,RunInJob\n")
}

#[tokio::test]
async fn a_slurm_that_runs_no_prolog_of_the_plugins_is_told_with_the_remedy() {
    let service = TestService::new().await;
    assert_eq!(
        Checks::of(&service).await.ok("prolog and epilog"),
        "slurmd runs the plugin's"
    );
    for (prolog, epilog) in [
        ("(null)", "(null)"),
        ("/etc/prolog", "(null)"),
        ("(null)", "/etc/epilog"),
    ] {
        service
            .slurm()
            .say("scontrol-config", &run_in_job(prolog, epilog));
        let checks = Checks::of(&service).await;
        let (detail, fix) = checks.failed("prolog and epilog");
        assert!(
            detail.starts_with("Slurm has PrologFlags=RunInJob and no Prolog= or Epilog="),
            "{detail}"
        );
        assert_eq!(
            fix,
            "set Prolog= and Epilog= of slurm.conf to io-autotune's run-in-job (docs/install.md), and `scontrol \
             reconfigure`"
        );
    }
}

#[tokio::test]
async fn scripts_of_the_sites_own_are_for_a_test_job_to_try() {
    let service = TestService::new().await;
    service
        .slurm()
        .say("scontrol-config", &run_in_job("/etc/prolog", "/etc/epilog"));
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("prolog and epilog");
    assert!(
        detail.contains("must run io-autotune's run-in-job"),
        "{detail}"
    );
    assert_eq!(fix, "`io-autotune doctor --job` shows whether they do");
}

#[tokio::test]
async fn a_slurm_whose_configuration_cannot_be_asked_for_is_told() {
    let service = TestService::new().await;
    service.slurm().silence("scontrol-config");
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("prolog and epilog");
    assert!(
        detail.contains("Unable to contact slurm controller"),
        "{detail}"
    );
    assert!(
        fix.starts_with("run `scontrol show config` on the service's host as its account"),
        "{fix}"
    );
}

const ACCOUNTS: &str = "accounts and coordinators";

/// Lets sacctmgr print the users and the coordinators of the accounts.
fn associate(service: &TestService, members: &str, coordinators: &str) {
    service.slurm().say("sacctmgr-cluster=alpha", members);
    service
        .slurm()
        .say("sacctmgr-format=Account,Coordinators", coordinators);
}

#[tokio::test]
async fn accounts_are_read_anew_and_counted() {
    let service = TestService::with("[slurm]\nassociations = true\n").await;
    associate(
        &service,
        "physics|daemon\nchemistry|daemon\nphysics|bin\nphysics|nobody-here\n",
        "physics|bin\n",
    );
    assert_eq!(
        Checks::of(&service).await.ok(ACCOUNTS),
        "2 users in 2 accounts, 1 coordinate"
    );
    associate(&service, "physics|daemon\n", "physics|\n");
    assert_eq!(
        Checks::of(&service).await.ok(ACCOUNTS),
        "1 users in 1 accounts, 0 coordinate"
    );
}

#[tokio::test]
async fn associations_that_cannot_be_read_are_told_with_the_remedy() {
    let service = TestService::with("[slurm]\nassociations = true\n").await;
    associate(&service, "physics|daemon\n", "physics|daemon\n");
    assert!(
        Checks::of(&service)
            .await
            .ok(ACCOUNTS)
            .ends_with("1 coordinate")
    );
    service.slurm().silence("sacctmgr-cluster=alpha");
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed(ACCOUNTS);
    assert!(detail.contains("sacctmgr"), "{detail}");
    assert!(
        detail.ends_with("; nobody is a coordinator meanwhile"),
        "{detail}"
    );
    assert_eq!(
        fix,
        "see whether slurmdbd runs; with PrivateData=accounts or users the service's account needs `sacctmgr modify \
         user io-autotune set adminlevel=Operator`"
    );
}

#[tokio::test]
async fn a_slurm_that_tells_of_no_user_is_told_with_the_remedy() {
    let service = TestService::with("[slurm]\nassociations = true\n").await;
    associate(&service, "physics|\n", "physics|\n");
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning(ACCOUNTS);
    assert_eq!(
        detail,
        "Slurm tells of no user's association with an account of cluster alpha"
    );
    assert!(
        fix.starts_with("with PrivateData=accounts or users"),
        "{fix}"
    );
}

#[tokio::test]
async fn who_coordinates_too_much_is_named() {
    let service = TestService::with("[slurm]\nassociations = true\n").await;
    let accounts = (0..10_001).map(|number| format!("a{number}"));
    let members: String = accounts
        .clone()
        .map(|account| format!("{account}|daemon\n"))
        .collect();
    let coordinators: String = accounts.map(|account| format!("{account}|bin\n")).collect();
    associate(&service, &members, &coordinators);
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning(ACCOUNTS);
    assert_eq!(
        detail,
        "these coordinate more than can be asked about, and so nothing: uid 2"
    );
    assert_eq!(fix, "make them operators ([access] of service.toml)");
}

#[tokio::test]
async fn nothing_is_said_of_accounts_that_are_not_asked_for() {
    let service = TestService::new().await;
    assert!(!Checks::of(&service).await.0.contains_key(ACCOUNTS));
}

const SMALL: &str = r#"
name = "small"
title = "A small accelerator"
description = "Made by a test."
takes_effect = "when the test looks"
[[parameters]]
name = "depth"
kind = "ordered"
values = [1, 2, 4]
default = 1
[[delivery.environment]]
variable = "SMALL_DEPTH"
value = "{depth}"
omit_default = true
"#;

/// A service whose catalogue has romio and one that a test changes; with the catalogue's directory.
async fn with_small(more: &str) -> (TestService, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let romio = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../deploy/accelerators.d/romio.toml"
    );
    std::fs::copy(romio, directory.path().join("romio.toml")).unwrap();
    std::fs::write(directory.path().join("small.toml"), SMALL).unwrap();
    let path = directory.path();
    let service = TestService::with(&format!("[accelerators]\ndirectory = {path:?}\n{more}")).await;
    (service, directory)
}

#[tokio::test]
async fn a_bad_catalogue_file_changes_nothing_and_is_told_with_its_line() {
    let (service, directory) = with_small("").await;
    let bad = SMALL.trim_start().replace("{depth}", "{deep}");
    let file = directory.path().join("small.toml");
    std::fs::write(&file, SMALL.trim_start()).unwrap();
    service.hang_up().await;
    assert_eq!(
        Checks::of(&service).await.ok("accelerators"),
        "2; the default is romio"
    );
    std::fs::write(&file, bad).unwrap();
    service.hang_up().await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("accelerators");
    assert!(
        detail.contains("line 12, column 9: parameter \"deep\" is not among"),
        "{detail}"
    );
    assert_eq!(
        fix,
        "correct the file: `io-autotune accelerators check FILE` says when it is right"
    );
    let shown = service.user(ALICE).get("/v1/accelerators/small").await.ok();
    assert_eq!(
        shown["space"][0]["values"].as_array().unwrap().len(),
        3,
        "{shown}"
    );
    service
        .job(ALICE, "app=ocean,accelerator=small")
        .runs(&service, 1.0)
        .await;
}

#[tokio::test]
async fn a_default_that_left_the_catalogue_is_told() {
    let (service, directory) = with_small("").await;
    std::fs::remove_file(directory.path().join("romio.toml")).unwrap();
    service.hang_up().await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("accelerators");
    assert!(
        detail.starts_with("the default, romio, is not in the catalogue: "),
        "{detail}"
    );
    assert_eq!(
        fix,
        "name one that is there in [accelerators] default of service.toml, and reload"
    );
}

#[tokio::test]
async fn an_accelerator_for_otherwise_that_left_the_catalogue_is_told() {
    let (service, directory) = with_small("otherwise = [\"small\"]\n").await;
    Checks::of(&service).await.ok("accelerators");
    std::fs::remove_file(directory.path().join("small.toml")).unwrap();
    service.hang_up().await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("accelerators");
    assert_eq!(
        detail,
        "otherwise = \"small\" is not in the catalogue, and never chosen"
    );
    assert_eq!(
        fix,
        "name one that is there in [accelerators] otherwise of service.toml, and reload"
    );
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn rules_that_are_wrong_are_told_with_their_line_and_the_last_ones_stay() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.toml");
    let rule = "[[rules]]\nname = \"r\"\njob_name = '^nf-'\napplication = \"workflow\"\n";
    write(&file, rule);
    let service = TestService::with(&format!("[applications]\nrules = {file:?}\n")).await;
    let path = file.display();
    assert_eq!(
        Checks::of(&service).await.ok("rules for applications"),
        format!("1, {path}")
    );
    write(&file, &rule.replace("job_name", "jobname"));
    service.hang_up().await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("rules for applications");
    assert!(
        detail.contains("line 3, column 1: unknown field `jobname`"),
        "{detail}"
    );
    assert!(
        detail.ends_with("; the last valid ones stay in use"),
        "{detail}"
    );
    assert_eq!(
        fix,
        "correct the file: `io-autotune rules check --file FILE NAME` says when it is right"
    );
    service
        .job(ALICE, "name=nf-ALIGN")
        .runs(&service, 1.0)
        .await;
    service.study("workflow").await;
    write(&file, rule);
    service.hang_up().await;
    Checks::of(&service).await.ok("rules for applications");
}
