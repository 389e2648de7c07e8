//! Tests of doctor's checks of the nodes, by the nodes' own reports.

use std::time::Duration;

use io_autotune_protocol::{Diagnosis, NodeState};
use jiff::SignedDuration;

use super::{ADMIN, ALICE, BOB, BURST_BUFFER, Checks, TestJob, TestService};

#[tokio::test]
async fn where_no_node_has_started_a_run_a_test_job_is_named() {
    let service = TestService::new().await;
    let checks = Checks::of(&service).await;
    assert_eq!(
        checks.ok("nodes"),
        "none has started a run here in the last day: `io-autotune doctor --job` lets one"
    );
    assert!(!checks.0.contains_key("nodes' clocks"));
}

#[tokio::test]
async fn a_node_of_another_version_is_named() {
    let service = TestService::new().await;
    service.hear("n1", service.node_state()).await;
    let version = "0.1.0".to_owned();
    service
        .hear(
            "n2",
            NodeState {
                version,
                ..service.node_state()
            },
        )
        .await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("nodes");
    assert_eq!(
        detail,
        format!("another version than {}: n2", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(fix, "upgrade io-autotune-node and the plugin there");
}

#[tokio::test]
async fn clocks_that_are_off_are_named_by_whose_they_are() {
    let service = TestService::new().await;
    for (node, ahead) in [("n1", -30_i64), ("n2", 30), ("n3", 4), ("n4", -4)] {
        // Some of a second passes on the way.
        let told_at =
            service.now() + SignedDuration::from_millis(ahead * 1000 + ahead.signum() * 500);
        service
            .hear(
                node,
                NodeState {
                    told_at,
                    ..service.node_state()
                },
            )
            .await;
    }
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("nodes' clocks");
    assert_eq!(detail, "off the service's: n1 (-30 s), n2 (+30 s)");
    assert_eq!(
        fix,
        "let chrony or ntpd set the clock on these nodes and on the service's host: `chronyc tracking`"
    );
    checks.ok("database clock");
    for node in ["n1", "n2"] {
        service.hear(node, service.node_state()).await;
    }
    Checks::of(&service).await.ok("nodes' clocks");
}

#[tokio::test]
async fn a_node_says_what_is_wrong_with_its_spool() {
    let service = TestService::new().await;
    let problem = Some("/var/spool/io-autotune is of uid 1000".to_owned());
    service
        .hear(
            "n1",
            NodeState {
                spool_problem: problem,
                ..service.node_state()
            },
        )
        .await;
    service.hear("n2", service.node_state()).await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("nodes' spools");
    assert_eq!(
        detail,
        "cannot be used: n1: /var/spool/io-autotune is of uid 1000"
    );
    assert!(
        fix.starts_with(
            "make the directory (plugstack.conf, spool_dir) root's, mode 0700, on a disk with room"
        ),
        "{fix}"
    );
}

#[tokio::test]
async fn reports_that_are_stuck_or_refused_are_told_by_node() {
    let service = TestService::new().await;
    let state = |waiting, oldest_seconds, refused| NodeState {
        waiting,
        oldest_seconds,
        refused,
        ..service.node_state()
    };
    service.hear("n1", state(2, 300, 0)).await;
    assert_eq!(
        Checks::of(&service).await.ok("nodes' spools"),
        "2 reports waited when last heard of"
    );
    service.hear("n2", state(3, 301, 0)).await;
    service.hear("n3", state(0, 0, 1)).await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.warning("nodes' spools");
    assert_eq!(
        detail,
        "reports are stuck: n2: 3 wait, the oldest for 301 s, 0 refused, n3: 0 wait, the oldest for 0 s, 1 refused"
    );
    assert!(
        fix.contains("systemctl enable --now io-autotune-flush.timer"),
        "{fix}"
    );
    assert!(fix.contains("io-autotune-node flush"), "{fix}");
}

#[tokio::test]
async fn a_node_whose_plugin_differs_is_named_with_what_to_do() {
    let service = TestService::new().await;
    let with = |arguments: &[&str]| NodeState {
        plugin: Some(
            arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect(),
        ),
        ..service.node_state()
    };
    service.hear("n1", with(&["default=off"])).await;
    service
        .hear("n2", with(&["default=off", "submit_deadline_ms=299"]))
        .await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("plugin on nodes");
    assert!(
        detail.starts_with("other arguments than on 1 node: n"),
        "{detail}"
    );
    assert!(
        fix.starts_with(
            "write the same line in plugstack.conf on all hosts; most nodes have: default=off"
        ),
        "{fix}"
    );
    // Two of three have the same.
    service.hear("n3", with(&["default=off"])).await;
    let checks = Checks::of(&service).await;
    let (detail, fix) = checks.failed("plugin on nodes");
    assert_eq!(detail, "other arguments than on 2 nodes: n2");
    assert!(fix.ends_with("most nodes have: default=off"), "{fix}");
    service.hear("n2", with(&["default=off"])).await;
    assert_eq!(
        Checks::of(&service).await.ok("plugin on nodes"),
        "the same arguments on 3 nodes"
    );
}

#[tokio::test]
async fn a_node_that_has_not_found_its_line_is_told_of() {
    let service = TestService::new().await;
    service
        .hear(
            "n1",
            NodeState {
                plugin: None,
                ..service.node_state()
            },
        )
        .await;
    assert_eq!(
        Checks::of(&service).await.ok("plugin on nodes"),
        "no node has found the plugin's line in plugstack.conf"
    );
}

#[tokio::test]
async fn the_plugins_arguments_are_listed_for_the_login_hosts_to_compare() {
    let service = TestService::new().await;
    for node in ["n1", "n2"] {
        service.hear(node, service.node_state()).await;
    }
    let plugin = Some(vec!["default=on".to_owned()]);
    service
        .hear(
            "n3",
            NodeState {
                plugin,
                ..service.node_state()
            },
        )
        .await;
    let diagnosis: Diagnosis = service.user(ADMIN).get("/v1/doctor").await.read();
    let plugins = diagnosis.plugins.into_iter();
    let plugins: Vec<_> = plugins
        .map(|plugin| (plugin.arguments.join(" "), plugin.nodes))
        .collect();
    let expected = [
        (
            "default=off".to_owned(),
            vec!["n1".to_owned(), "n2".to_owned()],
        ),
        ("default=on".to_owned(), vec!["n3".to_owned()]),
    ];
    assert_eq!(plugins, expected);
}

#[tokio::test]
async fn what_a_node_said_a_day_ago_says_nothing_of_now() {
    let service = TestService::new().await;
    service.hear("n1", service.node_state()).await;
    service.advance(Duration::from_hours(23)).await;
    service.hear("n2", service.node_state()).await;
    assert!(
        Checks::of(&service)
            .await
            .ok("nodes")
            .starts_with("2 nodes")
    );
    service.advance(Duration::from_hours(2)).await;
    assert!(
        Checks::of(&service)
            .await
            .ok("nodes")
            .starts_with("1 node in")
    );
}

#[tokio::test]
async fn nodes_of_two_clusters_are_named_with_theirs() {
    let service = TestService::of_clusters(&["alpha", "beta"], "").await;
    let hear = async |cluster: &str, version: &str| {
        let mut job: TestJob = service.job(ALICE, "app=doctor");
        job.job.cluster = cluster.into();
        let mut asks = job.asks();
        asks.node_state = Some(NodeState {
            version: version.into(),
            ..service.node_state()
        });
        service.node().post("/v1/runs/start", asks).await.ok();
    };
    hear("alpha", env!("CARGO_PKG_VERSION")).await;
    hear("beta", "0.1.0").await;
    let checks = Checks::of(&service).await;
    assert!(checks.warning("nodes").0.ends_with(": beta/n1"));
}

/// Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or completes
/// directives.
#[tokio::test]
async fn nobody_but_a_node_says_how_it_is() {
    let service = TestService::new().await;
    let job = service.job(BOB, "app=doctor,accelerator=smart-burst-buffer");
    let mut asks = job.asks();
    asks.node_state = Some(NodeState {
        version: "0.1.0".into(),
        ..service.node_state()
    });
    service
        .user(BURST_BUFFER)
        .post("/v1/runs/start", &asks)
        .await
        .ok();
    let checks = Checks::of(&service).await;
    assert!(
        checks
            .ok("nodes")
            .starts_with("none has started a run here")
    );
}

/// Attack (values): A node says a megabyte of itself.
/// Outcome: Its job is tuned, and what it said is not remembered.
#[tokio::test]
async fn a_node_that_says_too_much_of_itself_is_not_remembered() {
    let service = TestService::new().await;
    let problem = Some("x".repeat(1 << 20));
    service
        .hear(
            "n1",
            NodeState {
                spool_problem: problem,
                ..service.node_state()
            },
        )
        .await;
    assert!(
        Checks::of(&service)
            .await
            .ok("nodes")
            .starts_with("none has started a run here")
    );
}
