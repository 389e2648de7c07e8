//! Tests of the two doors, and of the addresses from which root may act.

use std::net::IpAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::super::TestJob;
use super::super::service::Caller;
use super::*;
use crate::config::Config;
use crate::door::Door;
use crate::listen::{self, Listeners};
use crate::tls;

const ELSEWHERE: &str = "this address is for root of the nodes; ask at that of users";

/// Attack (service): Users, and root for anything but runs, come to the nodes' door.
/// Outcome: They are cut off, or told to ask at the users' door.
#[tokio::test]
async fn the_nodes_door_is_for_root_and_for_runs_alone() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let started = job.start(&service).await;
    for uid in [
        ALICE,
        OPERATOR,
        ADMIN,
        REPORT_READER,
        COLLECTOR,
        BURST_BUFFER,
    ] {
        let user = service.user(uid).at(Door::Nodes);
        for answer in [
            user.post("/v1/runs/start", job.asks()).await,
            user.post("/v1/runs/finish", job.reports(Some(&started), 5.0))
                .await,
            user.post("/v1/runs/over", json!({"runs": [1]})).await,
            user.send("POST", "/v1/runs/start", b"no JSON".to_vec())
                .await,
            user.get("/v1/studies").await,
            user.get("/v1/nothing").await,
        ] {
            assert_eq!(answer.forbidden(), ELSEWHERE, "{answer}");
        }
    }
    let unfinished = "select count(*) from runs where finished_at is null";
    assert_eq!(service.database.number(unfinished).await, 1);
    for path in ["/v1/studies", "/v1/ready", "/v1/openapi.json", "/v1/doctor"] {
        let answer = service.node().get(path).await;
        assert!([403, 404].contains(&answer.status.as_u16()), "{answer}");
        let mut unsigned = service.node().signed("GET", path, Vec::new());
        unsigned.credential = None;
        let answer = service.node().send_as_it_is(unsigned).await;
        answer.refused(401, "unauthorized");
    }
    service
        .node()
        .get("/v1/studies")
        .await
        .refused(404, "no_such_path");
    let mut health = service.node().signed("GET", "/v1/health", Vec::new());
    health.credential = None;
    let health = service.node().send_as_it_is(health).await;
    assert_eq!(
        (health.status.as_u16(), health.text().as_str()),
        (200, "ok\n")
    );
}

/// The answer over TCP, from a port that anybody may bind.
async fn over_tcp(address: std::net::SocketAddr, request: &Signed) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{} {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nx-io-autotune-nonce: {}\r\nx-io-autotune-credential: {}\r\n\r\n",
        request.method,
        request.path,
        request.body.len(),
        request.nonce,
        request.credential.as_ref().unwrap()
    );
    let mut answer = String::new();
    // Who is let go of before the first byte cannot write.
    let _ = stream
        .write_all(&[head.as_bytes(), &request.body].concat())
        .await;
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

/// Attack (service): Users, and root for anything but runs, come to the nodes' door.
/// Outcome: They are cut off, or told to ask at the users' door.
#[tokio::test]
async fn where_nodes_come_from_any_port_their_users_are_told_to_ask_elsewhere() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let body = || serde_json::to_vec(&job.asks()).unwrap();
    for (any_port, alices, roots) in [(false, "", ""), (true, "HTTP/1.1 403", "HTTP/1.1 200")] {
        let path = service.files.path("any-port.toml");
        let text = std::fs::read_to_string(service.files.path("service.toml")).unwrap();
        let mut toml: toml::Table = text.parse().unwrap();
        let listen = format!("nodes_tcp = \"127.0.0.1:0\"\nnodes_any_port = {any_port}\n");
        toml.insert("listen".into(), toml::Value::Table(listen.parse().unwrap()));
        std::fs::write(&path, toml.to_string()).unwrap();
        let config = Config::load(&path).unwrap();
        let (nodes, _users) = Listeners::open(&config.listen).unwrap();
        let address = nodes.tcp_addresses()[0];
        let (stop, stopping) = watch::channel(false);
        let router = service.door(Door::Nodes);
        let serving = tokio::spawn(listen::serve(
            Door::Nodes,
            nodes,
            router,
            tls::none(),
            stopping,
        ));
        for path in ["/v1/runs/start", "/v1/runs/finish", "/v1/runs/over"] {
            let signed = service.user(ALICE).signed("POST", path, body());
            let told = over_tcp(address, &signed).await;
            assert!(told.starts_with(alices), "{path}: {told}");
            assert_eq!(told.contains(ELSEWHERE), any_port, "{path}: {told}");
            assert_eq!(told.is_empty(), !any_port, "{path}: {told}");
        }
        assert_eq!(
            service.database.number("select count(*) from runs").await,
            0
        );
        let signed = service.node().signed("POST", "/v1/runs/start", body());
        let told = over_tcp(address, &signed).await;
        assert!(told.starts_with(roots), "{told}");
        assert_eq!(told.is_empty(), !any_port, "{told}");
        stop.send(true).unwrap();
        serving.await.unwrap();
    }
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        1
    );
}

/// A site may have one address for all.
#[tokio::test]
async fn the_users_door_starts_and_finishes_runs_of_root_too() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let root = service.user(ROOT);
    let started = root.post("/v1/runs/start", job.asks()).await.read();
    let report = job.reports(Some(&started), 5.0);
    let finished = root.post("/v1/runs/finish", report).await.ok();
    assert_eq!(finished["run_id"], started.run_id);
    // The nodes' door gives the same answer.
    assert_eq!(job.start(&service).await.run_id, started.run_id);
}

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 1));
const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 9));

/// A service that believes root only of a node that Slurm has at its address; n1 is [`HERE`].
async fn checking() -> TestService {
    let service = TestService::with("[access]\ncheck_origins = true\n").await;
    let nodes = "NodeName=n1 Arch=x86_64 NodeAddr=127.0.0.1 NodeHostName=localhost\n\
                 NodeName=n2 Arch=x86_64 NodeAddr=127.0.0.9 NodeHostName=n2\n";
    service.slurm().say("scontrol-nodes", nodes);
    service.look_at_slurm().await;
    service
}

/// Attack (nodes): With `check_origins`, root of a host speaks for another node, or for one that
/// Slurm does not list.
#[tokio::test]
async fn root_of_a_host_speaks_for_its_own_node_alone() {
    let service = checking().await;
    let mut job = service.job(ALICE, "app=ocean");
    let ask = async |origin, job: &TestJob| {
        let root = service.node().vouched(origin);
        [
            root.post("/v1/runs/start", job.asks()).await,
            root.post("/v1/runs/finish", job.reports(None, 5.0)).await,
        ]
    };
    for answer in ask(THERE, &job).await {
        assert_eq!(
            answer.forbidden(),
            "node \"n1\" is not at 127.0.0.9, where the request comes from ([access] check_origins in service.toml)"
        );
    }
    job.job.node = "n77".into();
    for answer in ask(THERE, &job).await {
        assert_eq!(
            answer.refused(503, "unknown_node"),
            "Slurm lists no node \"n77\", or cannot be asked ([access] check_origins in service.toml)"
        );
    }
    assert_eq!(
        service.database.number("select count(*) from runs").await,
        0
    );
    job.job.node = "n1".into();
    for answer in ask(HERE, &job).await {
        answer.ok();
    }
    job.job.node = "n2".into();
    for answer in ask(THERE, &job).await {
        answer.ok();
    }
}

/// A back-end that tells no host leaves the connection's address, and none is this host.
#[tokio::test]
async fn where_no_back_end_vouches_for_a_host_the_connection_does() {
    let service = checking().await;
    let job = service.job(ALICE, "app=ocean");
    let start = async |root: Caller<'_>| {
        let root = root.at(Door::Nodes);
        root.post("/v1/runs/start", job.asks()).await
    };
    let root = service.user(ROOT);
    start(root.from(THERE, true)).await.forbidden();
    start(root.from(HERE, true)).await.ok();
    start(root).await.ok();
    // The credential's host counts more than the connection's.
    start(root.from(HERE, true).vouched(THERE))
        .await
        .forbidden();
    start(root.from(THERE, true).vouched(HERE)).await.ok();
    let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
    start(root.from(mapped, true)).await.ok();
}

/// Nothing is known yet: a start gets that answer, and is sent again.
#[tokio::test]
async fn before_slurm_has_told_of_nodes_root_is_asked_to_wait() {
    let service = TestService::with("[access]\ncheck_origins = true\n").await;
    let job = service.job(ALICE, "app=ocean");
    let root = service.node().vouched(HERE);
    for _ in 0..2 {
        let answer = root.post("/v1/runs/start", job.asks()).await;
        answer.refused(503, "unknown_node");
        // scontrol fails: what was known, nothing, stays.
        service.look_at_slurm().await;
    }
    service
        .slurm()
        .say("scontrol-nodes", "NodeName=n1 NodeAddr=127.0.0.1\n");
    service.look_at_slurm().await;
    root.post("/v1/runs/start", job.asks()).await.ok();
    // Where it fails later, the nodes stay where they were.
    service.slurm().silence("scontrol-nodes");
    service.look_at_slurm().await;
    root.post("/v1/runs/start", job.asks()).await.ok();
}

#[tokio::test]
async fn the_burst_buffers_account_speaks_for_no_node_and_is_not_looked_for_there() {
    let service = checking().await;
    let mut job = service.job(ALICE, "app=staged,accelerator=smart-burst-buffer");
    job.job.node = "slurmctld".into();
    let account = service.user(BURST_BUFFER).vouched(THERE);
    account.post("/v1/runs/start", job.asks()).await.ok();
}

#[tokio::test]
async fn where_origins_are_not_checked_root_speaks_for_any_node() {
    let service = TestService::new().await;
    let job = service.job(ALICE, "app=ocean");
    let root = service.node().vouched(THERE);
    root.post("/v1/runs/start", job.asks()).await.ok();
    root.post("/v1/runs/finish", job.reports(None, 5.0))
        .await
        .ok();
}
