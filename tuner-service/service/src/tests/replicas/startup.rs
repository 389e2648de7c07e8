//! A service that does not start, and says why.

use clap::Parser;
use tokio::runtime::Handle;

use super::*;
use crate::program::{Arguments, chosen};

/// Runs the program by a service.toml as the site would have written it, with more arguments; returns why
/// it ended.
async fn ends(service: &TestService, clusters: &[&str], arguments: &[&str]) -> String {
    let text = std::fs::read_to_string(service.files.path("service.toml")).unwrap();
    let mut toml: toml::Table = text.parse().unwrap();
    let named = clusters.iter().map(|name| {
        let text = format!("cluster = {name:?}\nconf = \"/nowhere/{name}.conf\"\n");
        text.parse::<toml::Table>().unwrap()
    });
    let named: Vec<toml::Value> = named.map(toml::Value::Table).collect();
    toml.insert("slurm".into(), named.into());
    let path = service.files.path("starting.toml");
    std::fs::write(&path, toml.to_string()).unwrap();
    let path = path.display().to_string();
    let argv = [&["io-autotuned", "--config", &path], arguments].concat();
    let arguments = Arguments::parse_from(argv);
    match chosen(&arguments, &Handle::current()).await {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// A service of two clusters, which both have a study `ocean` of Alice's; beta has another, too.
async fn of_two() -> TestService {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    for (cluster, app) in [("alpha", "ocean"), ("beta", "ocean"), ("beta", "ice")] {
        let mut job = service.job(ALICE, &format!("app={app}"));
        job.job.cluster = cluster.into();
        job.completes(&service, 10.0).await;
    }
    service.poll().await;
    service
}

/// How many studies each cluster has.
async fn studies(service: &TestService) -> String {
    let counts = "select string_agg(cluster || ' ' || studies, ', ' order by cluster)
                  from (select cluster, count(*) as studies from studies group by cluster) c";
    service.database.text(counts).await
}

#[tokio::test]
async fn a_service_does_not_start_without_a_cluster_that_has_studies() {
    let service = of_two().await;
    let clusters = ["alpha", "gamma"];
    let told = ends(&service, &clusters, &[]).await;
    assert_eq!(
        told,
        "the database: 2 studies are of cluster beta, which service.toml does not have: name it in a \
         [[slurm]], with `sources = []` if it is no more; or if it has another name now, \
         `io-autotuned --map-cluster beta=NAME`, as the service's account, and start again"
    );
    // If the studies are mapped by mistake, the other cluster has one of the same studies.
    let told = ends(&service, &clusters, &["--map-cluster=beta=alpha"]).await;
    assert_eq!(
        told,
        "the database: nothing was changed: cluster alpha has 1 of these studies itself, with runs of \
         its own; keep both clusters in service.toml, this one with `sources = []` if it is no more"
    );
    assert_eq!(studies(&service).await, "alpha 1, beta 2");
}

#[tokio::test]
async fn a_cluster_that_has_another_name_now_takes_its_studies_along() {
    let service = of_two().await;
    let clusters = ["alpha", "gamma"];
    assert_eq!(
        ends(&service, &clusters, &["--map-cluster=beta=gamma"]).await,
        ""
    );
    assert_eq!(studies(&service).await, "alpha 1, gamma 2");
    let names = clusters.map(str::to_owned);
    assert!(
        crate::serve::migrated(&service.store, &names)
            .await
            .unwrap()
    );
    let lines = service.user(ADMIN).get("/v1/audit").await.ok();
    assert_eq!(lines[0]["action"], "map-cluster");
    assert_eq!(lines[0]["why"], "io-autotuned --map-cluster");
}

#[tokio::test]
async fn studies_are_mapped_to_a_cluster_of_the_file_alone() {
    let service = of_two().await;
    let told = ends(&service, &["alpha", "gamma"], &["--map-cluster=beta=delta"]).await;
    assert_eq!(
        told,
        "--map-cluster delta: service.toml has no cluster of this name: it has alpha, gamma"
    );
    assert_eq!(studies(&service).await, "alpha 1, beta 2");
}

/// A database of a newer release, whose schema needs a newer program.
#[tokio::test]
async fn a_service_does_not_start_on_a_newer_schema_than_it_knows() {
    let service = TestService::new().await;
    service
        .database
        .execute(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values (90000101000000, 'of a later release', true, '', 0)",
        )
        .await;
    service
        .database
        .execute("update schema_needs set migration = 90000101000000")
        .await;
    let told = ends(&service, &[CLUSTER], &[]).await;
    assert!(told.contains("upgrade this program"), "{told}");
}

/// Attack (files): Several files of accelerators have mistakes, and an editor left its lock.
/// Outcome: `--check` names each mistake at its line.
#[tokio::test]
async fn a_check_names_all_that_is_wrong_in_all_files_at_its_lines() {
    let service = TestService::new().await;
    let path = service.files.path("service.toml");
    let directory = service.files.path("accelerators.d");
    std::fs::create_dir(&directory).unwrap();
    let shipped = service.catalogue();
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace(
        &shipped.display().to_string(),
        &directory.display().to_string(),
    );
    std::fs::write(&path, text).unwrap();
    let arguments = [
        "io-autotuned",
        "--config",
        &path.display().to_string(),
        "--check",
    ]
    .map(str::to_owned);
    let arguments = Arguments::parse_from(arguments);
    for name in ["romio.toml", ".romio.toml", "romio.toml~"] {
        std::fs::copy(shipped.join("romio.toml"), directory.join(name)).unwrap();
    }
    std::os::unix::fs::symlink("u@h.1", directory.join(".#romio.toml")).unwrap();
    chosen(&arguments, &Handle::current()).await.unwrap();
    for name in ["a.toml", "b.toml"] {
        std::fs::write(directory.join(name), "nmae = 1\ntitel = 2\n").unwrap();
    }
    let told = chosen(&arguments, &Handle::current())
        .await
        .unwrap_err()
        .to_string();
    for name in ["a.toml", "b.toml"] {
        for (line, meant) in [(1, "name"), (2, "title")] {
            let place = format!("{}:{line}:1: ", directory.join(name).display());
            let line = told.lines().find(|line| line.starts_with(&place));
            let line = line.unwrap_or_else(|| panic!("{place} in {told}"));
            assert!(
                line.ends_with(&format!("did you mean `{meant}`?")),
                "{line}"
            );
        }
    }
}

#[tokio::test]
async fn a_file_that_is_wrong_is_named_with_what_is_meant() {
    let service = TestService::new().await;
    let path = service.files.path("service.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    for (right, wrong, told) in [
        ("admins", "adminz", "did you mean `admins`?"),
        (
            "default = \"romio\"",
            "default = \"nothing\"",
            "is not in the catalogue",
        ),
        ("[users]", "[users]\nin_flight = 0", "in_flight"),
    ] {
        std::fs::write(&path, text.replace(right, wrong)).unwrap();
        let arguments = [
            "io-autotuned",
            "--config",
            &path.display().to_string(),
            "--check",
        ]
        .map(str::to_owned);
        let arguments = Arguments::parse_from(arguments);
        let error = chosen(&arguments, &Handle::current()).await.unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
    }
    std::fs::write(&path, text).unwrap();
}
