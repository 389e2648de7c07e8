//! Files of accelerators: what they deliver, and that they change while the service runs.

use io_autotune_engine::Phase;

use super::super::{Course, QUICK};
use super::*;

/// The text of "A new one in ten minutes".
fn documented() -> String {
    let page = include_str!("../../../../../docs/accelerators.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// A run's environment, as `NAME=VALUE`.
fn environment(started: &Value) -> Vec<String> {
    let Some(variables) = started["delivery"]["environment"].as_array() else {
        return Vec::new();
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    variables
        .iter()
        .map(|one| format!("{}={}", text(&one["name"]), text(&one["value"])))
        .collect()
}

#[tokio::test]
async fn a_file_that_is_added_is_offered_without_a_restart() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = catalogue.service().await;
    catalogue.put("fastio", &documented());
    assert_eq!(service.accelerators().await, ["romio"]);
    service.look_at_files().await;
    assert_eq!(service.accelerators().await, ["fastio", "romio"]);
    let shown = service.shown("fastio").await.ok();
    assert_eq!(
        shown["parameters"],
        json!(["buffer_kib", "mode", "threads"])
    );
    // `show` says of it that it was not run on the real thing.
    assert_eq!(shown["tried_on"], Value::Null);
    assert_eq!(shown["is_default"], false);
    let run = service
        .job(ALICE, "app=ocean,accelerator=fastio")
        .runs(&service, 2.0)
        .await;
    assert_eq!(
        (&run["state"], &run["accelerator"]),
        (&json!("counted"), &json!("fastio"))
    );
}

#[tokio::test]
async fn an_accelerator_of_the_documentation_is_delivered_as_it_says() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    catalogue.put("fastio", &documented());
    let service = catalogue.service().await;
    let request = "app=ocean,accelerator=fastio";
    service.job(ALICE, request).runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    let values = [
        ("mode", "threaded"),
        ("threads", "8"),
        ("buffer_kib", "1024"),
    ];
    service.pin(ALICE, study, &values).await.ok();
    let started = service.job(ALICE, request).try_start(&service).await.ok();
    let mut given = environment(&started);
    given.sort();
    assert_eq!(given, ["FASTIO_BUFFER=1024K", "FASTIO_THREADS=threaded:8"]);
}

#[tokio::test]
async fn a_pin_that_a_constraint_forbids_is_refused_with_the_constraint() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    catalogue.put("fastio", &documented());
    let service = catalogue.service().await;
    let job = service.job(ALICE, "app=ocean,accelerator=fastio");
    job.runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    let values = [("mode", "threaded"), ("threads", "8"), ("buffer_kib", "64")];
    let refused = service.pin(ALICE, study, &values).await.bad_request();
    assert!(refused.contains("must hold"), "{refused}");
    assert!(
        refused.contains("buffer_kib") && refused.contains("threads"),
        "{refused}"
    );
    assert_eq!(service.study("ocean").await["pin"], Value::Null);
}

#[tokio::test]
async fn a_value_at_risk_is_given_and_explained_only_to_who_asks_for_it() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let risks =
        "[[risks]]\nparameter = \"mode\"\nvalues = [\"threaded\"]\nwhy = \"It writes later.\"\n";
    catalogue.put("fastio", &format!("{}{risks}", documented()));
    let service = catalogue.service().await;
    let shown = service.shown("fastio").await.ok();
    assert_eq!(shown["parameters"], json!(["buffer_kib"]));
    assert_eq!(shown["at_risk"], "fastio@risk");
    let all = service.shown("fastio@risk").await.ok();
    assert_eq!(all["parameters"], json!(["buffer_kib", "mode", "threads"]));
    assert_eq!(all["risks"], json!(["mode=threaded: It writes later."]));

    service
        .job(ALICE, "app=ocean,accelerator=fastio@risk")
        .runs(&service, 2.0)
        .await;
    let study = service.study_id("ocean").await;
    service
        .pin(ALICE, study, &[("mode", "threaded"), ("threads", "8")])
        .await
        .ok();
    let job = service.job(ALICE, "app=ocean,accelerator=fastio@risk");
    job.runs(&service, 1.0).await;
    let path = format!("/v1/runs/{}", job.job.job_id);
    let launches = service.user(ALICE).get(&path).await.ok();
    assert_eq!(
        launches[0]["risks"],
        json!(["mode=threaded: It writes later."])
    );
}

/// A shipped accelerator, what is pinned, and what a job is given then: variables, files, settings,
/// the command with its environment, directives, and who decides inside the job.
type Shipped = (&'static str, &'static [(&'static str, &'static str)], Value);

fn shipped() -> Vec<Shipped> {
    let variable = |name: &str, value: &str| json!({ "name": name, "value": value });
    let setting =
        |kind: &str, name: &str, value: &str| json!({ "kind": kind, "name": name, "value": value });
    vec![
        (
            "unifyfs",
            &[("logio_chunk_size", "65536")],
            json!({ "environment": [variable("UNIFYFS_LOGIO_CHUNK_SIZE", "65536")] }),
        ),
        (
            "scr",
            &[("flush", "20"), ("set_size", "16")],
            json!({ "environment": [variable("SCR_FLUSH", "20"), variable("SCR_SET_SIZE", "16")] }),
        ),
        (
            "hdf5-subfiling",
            &[("ioc_per_node", "4")],
            json!({ "environment": [variable("H5FD_SUBFILING_IOC_PER_NODE", "4")] }),
        ),
        (
            "small-read-optimizer",
            &[("sequence_length", "50"), ("prefetch_size", "5242880")],
            json!({ "environment": [variable("SRO_SEQUENCE_LENGTH", "50"), variable("SRO_PREFETCH_SIZE", "5242880")] }),
        ),
        (
            "rclone-copy",
            &[("transfers", "32"), ("multi_thread_cutoff", "10M")],
            json!({ "environment": [variable("RCLONE_TRANSFERS", "32"), variable("RCLONE_MULTI_THREAD_CUTOFF", "10M")] }),
        ),
        (
            "fsspec-s3",
            &[("block_size", "1048576"), ("cache_type", "blockcache")],
            json!({ "environment": [variable("FSSPEC_S3_DEFAULT_BLOCK_SIZE", "1048576"),
                variable("FSSPEC_S3_DEFAULT_CACHE_TYPE", "blockcache")] }),
        ),
        (
            "openfoam",
            &[("file_handler", "masterUncollated")],
            json!({ "environment": [variable("FOAM_FILEHANDLER", "masterUncollated")] }),
        ),
        (
            "openfoam@risk",
            &[("file_handler", "collated")],
            json!({ "environment": [variable("FOAM_FILEHANDLER", "collated")] }),
        ),
        (
            "blosc",
            &[("nthreads", "8")],
            json!({ "environment": [variable("BLOSC_NTHREADS", "8")] }),
        ),
        (
            "blosc@risk",
            &[("clevel", "1"), ("shuffle", "BITSHUFFLE")],
            json!({ "environment": [variable("BLOSC_CLEVEL", "1"), variable("BLOSC_SHUFFLE", "BITSHUFFLE")] }),
        ),
        (
            "gfortran",
            &[
                ("formatted_buffer_size", "65536"),
                ("unformatted_buffer_size", "2097152"),
            ],
            json!({ "environment": [variable("GFORTRAN_FORMATTED_BUFFER_SIZE", "65536"),
                variable("GFORTRAN_UNFORMATTED_BUFFER_SIZE", "2097152")] }),
        ),
        (
            "gfortran@risk",
            &[("formatted_buffer_size", "1048576")],
            json!({ "environment": [variable("GFORTRAN_FORMATTED_BUFFER_SIZE", "1048576")] }),
        ),
        (
            "pnetcdf",
            &[
                ("header_read_chunk_size", "1048576"),
                ("ibuf_size", "67108864"),
            ],
            json!({ "environment": [variable("PNETCDF_HINTS", "nc_header_read_chunk_size=1048576;nc_ibuf_size=67108864")] }),
        ),
        (
            "pnetcdf@risk",
            &[("var_align_size", "65536")],
            json!({ "environment": [variable("PNETCDF_HINTS", "nc_var_align_size=65536")] }),
        ),
        (
            "torch-loader",
            &[("workers", "4"), ("prefetch", "8")],
            json!({ "environment": [variable("TORCH_LOADER_WORKERS", "4"), variable("TORCH_LOADER_PREFETCH", "8")] }),
        ),
        (
            "dask",
            &[("num_workers", "16")],
            json!({ "environment": [variable("DASK_NUM_WORKERS", "16")] }),
        ),
        (
            "ompio",
            &[
                ("fcoll", "dynamic_gen2"),
                ("bytes_per_agg", "4194304"),
                ("num_aggregators", "2"),
            ],
            json!({ "environment": [variable("OMPI_MCA_fcoll", "dynamic_gen2"),
                variable("OMPI_MCA_io_ompio_bytes_per_agg", "4194304"),
                variable("OMPI_MCA_io_ompio_num_aggregators", "2")] }),
        ),
        (
            "ompio@risk",
            &[("io", "^ompio")],
            json!({ "environment": [variable("OMPI_MCA_io", "^ompio")] }),
        ),
        (
            "romio",
            &[("cb_nodes", "8"), ("romio_ds_write", "disable")],
            json!({ "files": [{ "name": "romio_hints", "variable": "ROMIO_HINTS",
                "content": "cb_nodes 8\nromio_ds_write disable\n" }] }),
        ),
        (
            "page-cache",
            &[
                ("dirty_bytes", "4294967296"),
                ("dirty_expire_centisecs", "100"),
            ],
            json!({ "settings": [setting("sysctl", "vm.dirty_bytes", "4294967296"),
                setting("sysctl", "vm.dirty_expire_centisecs", "100")] }),
        ),
        (
            "block-queue",
            &[("read_ahead_kb", "512"), ("scheduler", "none")],
            json!({ "settings": [setting("block", "scheduler", "none"), setting("block", "read_ahead_kb", "512")] }),
        ),
        (
            "lustre-client",
            &[("max_rpcs_in_flight", "16"), ("max_read_ahead_mb", "0")],
            json!({ "settings": [setting("lctl", "osc.*.max_rpcs_in_flight", "16"),
                setting("lctl", "llite.*.max_read_ahead_mb", "0")] }),
        ),
        (
            "rclone-vfs",
            &[("cache_mode", "off"), ("buffer_size", "4M")],
            json!({ "command": { "name": "rclone-vfs", "provides": ["RCLONE_VFS_DIR"], "environment": [
                variable("RCLONE_VFS_CACHE_MODE", "off"), variable("RCLONE_BUFFER_SIZE", "4M"),
                variable("RCLONE_VFS_READ_CHUNK_SIZE", "128M")] } }),
        ),
        (
            "s3fs-fuse",
            &[("cache", "on"), ("parallel_count", "20")],
            json!({ "command": { "name": "s3fs-fuse", "provides": ["S3FS_DIR"], "environment": [
                variable("S3FS_CACHE", "on"), variable("S3FS_MULTIPART_SIZE", "10"),
                variable("S3FS_PARALLEL_COUNT", "20")] } }),
        ),
        (
            "glusterfs-mount",
            &[("read_ahead_kb", "2048")],
            json!({ "command": { "name": "glusterfs-mount", "provides": ["GLUSTERFS_DIR"], "environment": [
                variable("GLUSTERFS_READ_AHEAD_KB", "2048")] } }),
        ),
        (
            "glusterfs-mount@risk",
            &[("entry_timeout", "600"), ("writeback", "on")],
            json!({ "command": { "name": "glusterfs-mount", "provides": ["GLUSTERFS_DIR"], "environment": [
                variable("GLUSTERFS_READ_AHEAD_KB", "128"), variable("GLUSTERFS_ATTRIBUTE_TIMEOUT", "1"),
                variable("GLUSTERFS_ENTRY_TIMEOUT", "600"), variable("GLUSTERFS_NEGATIVE_TIMEOUT", "0"),
                variable("GLUSTERFS_WRITEBACK", "on")] } }),
        ),
        (
            "smart-burst-buffer",
            &[("workers", "4"), ("cache_gb", "40")],
            json!({ "directives": [variable("worker-threads", "4"), variable("ram-destagers", "10"),
                variable("flavor", "ram_40"), variable("ram-cache-threshold", "90")] }),
        ),
        (
            "block-online",
            &[("online", "settling")],
            json!({ "online": { "policy": "settling", "levers": [{ "kind": "block", "name": "max_sectors_kb" },
                { "kind": "block", "name": "nr_requests" }] } }),
        ),
        (
            "lustre-online",
            &[("online", "iopathtune")],
            json!({ "online": { "policy": "iopathtune", "levers": [
                { "kind": "lctl", "name": "osc.*.max_pages_per_rpc" },
                { "kind": "lctl", "name": "osc.*.max_rpcs_in_flight" }] } }),
        ),
        (
            "lustre-online-cache",
            &[("online", "iopathtune-requests")],
            json!({ "online": { "policy": "iopathtune-requests", "levers": [
                { "kind": "lctl", "name": "osc.*.max_pages_per_rpc" },
                { "kind": "lctl", "name": "osc.*.max_rpcs_in_flight" },
                { "kind": "lctl", "name": "osc.*.max_dirty_mb" }] } }),
        ),
    ]
}

/// The parts of a delivery that change anything in a job.
fn carried(delivery: &Value) -> Value {
    let ways = [
        "environment",
        "files",
        "settings",
        "command",
        "directives",
        "online",
    ];
    let given = ways.iter().filter_map(|way| {
        let given = &delivery[way];
        let is_none = given.is_null() || given.as_array().is_some_and(Vec::is_empty);
        (!is_none).then(|| ((*way).to_owned(), given.clone()))
    });
    Value::Object(given.collect())
}

#[tokio::test]
async fn each_shipped_accelerator_is_delivered_in_its_own_variables() {
    let service = TestService::new().await;
    let mut offered = service.accelerators().await;
    for (accelerator, pin, expected) in shipped() {
        let request = format!("app=with-{accelerator},accelerator={accelerator}");
        let run = service.job(ALICE, &request).runs(&service, 2.0).await;
        assert_eq!(run["accelerator"], accelerator, "{run}");
        let study = service.study_id(&format!("with-{accelerator}")).await;
        service.pin(ALICE, study, pin).await.ok();
        let job = service.job(ALICE, &request);
        let started = job.completes(&service, 2.0).await;
        let given = serde_json::to_value(&started.delivery).unwrap();
        assert_eq!(carried(&given), expected, "{accelerator}");
        service.poll().await;
        let run = &service.run_of(job.job.job_id).await["run"];
        assert_eq!(
            (&run["role"], &run["state"]),
            (&json!("pinned"), &json!("counted")),
            "{run}"
        );
        offered.retain(|name| name != accelerator);
    }
    assert_eq!(offered, [""; 0], "each shipped accelerator is tried");
}

#[tokio::test]
async fn at_its_default_a_shipped_accelerator_leaves_the_job_as_it_is() {
    let service = TestService::new().await;
    for accelerator in service.accelerators().await {
        let request = format!("app=with-{accelerator},accelerator={accelerator}");
        let job = service.job(ALICE, &request);
        let started = job.try_start(&service).await.ok();
        assert_eq!(started["role"], "baseline");
        let expected = match accelerator.as_str() {
            // An empty file changes nothing, and shows whether ROMIO is used.
            "romio" => {
                json!({ "files": [{ "name": "romio_hints", "variable": "ROMIO_HINTS", "content": "",
                "unless_exists": "/etc/romio-hints" }] })
            }
            _ => json!({}),
        };
        assert_eq!(carried(&started["delivery"]), expected, "{accelerator}");
    }
}

#[tokio::test]
async fn a_wrong_file_harms_no_job_and_the_doctor_tells_its_line_and_column() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let good = sized("small", "[1, 2, 4]");
    catalogue.put("small", &good);
    let service = catalogue.service().await;
    assert_eq!(service.check("accelerators").await["state"], "ok");
    catalogue.put("small", &good.replace("{size}", "{deep}"));
    service.look_at_files().await;
    let check = service.check("accelerators").await;
    assert_eq!(check["state"], "failed", "{check}");
    let detail = check["detail"].as_str().unwrap();
    let told = "line 13, column 9: parameter \"deep\" is not among this accelerator's: size";
    assert!(
        detail.contains("small.toml: ") && detail.contains(told),
        "{detail}"
    );
    let fix = check["fix"].as_str().unwrap();
    assert!(fix.contains("io-autotune accelerators check FILE"), "{fix}");
    let shown = service.shown("small").await.ok();
    assert_eq!(shown["space"][0]["values"], json!([1, 2, 4]));
    let job = service.job(ALICE, "app=ocean,accelerator=small");
    assert_eq!(job.runs(&service, 2.0).await["state"], "counted");
    // Once corrected, it is in force again.
    catalogue.put("small", &sized("small", "[1, 2]"));
    service.look_at_files().await;
    assert_eq!(service.check("accelerators").await["state"], "ok");
    let shown = service.shown("small").await.ok();
    assert_eq!(shown["space"][0]["values"], json!([1, 2]));
}

/// A service with `small`, and a study of it whose runs of 1 and of 4 counted; the pin of 4 has
/// ended.
async fn with_small(catalogue: &SiteCatalogue) -> TestService {
    catalogue.put("small", &sized("small", "[1, 2, 4]"));
    let service = catalogue.service().await;
    service.job(ALICE, SMALL).runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    service.pin(ALICE, study, &[("size", "4")]).await.ok();
    let run = service.job(ALICE, SMALL).runs(&service, 2.0).await;
    assert_eq!(
        (&run["role"], &run["state"]),
        (&json!("pinned"), &json!("counted"))
    );
    service
}

const SMALL: &str = "app=ocean,accelerator=small";

async fn unpin(service: &TestService) {
    let path = format!("/v1/studies/{}/unpin", service.study_id("ocean").await);
    let why = json!({ "why": "a test asks for it" });
    service.user(ALICE).post(&path, why).await.ok();
}

#[tokio::test]
async fn a_value_that_goes_opens_an_epoch_that_keeps_what_still_fits() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_small(&catalogue).await;
    unpin(&service).await;
    catalogue.put("small", &sized("small", "[1, 2]"));
    service.look_at_files().await;
    let run = service.job(ALICE, SMALL).runs(&service, 2.0).await;
    assert_eq!(
        (&run["epoch"], &run["role"]),
        (&json!(2), &json!("baseline")),
        "{run}"
    );
    let reason = run["reason"].as_str().unwrap();
    assert!(
        reason.contains("2 of"),
        "the default's first run is known: {reason}"
    );
    let runs = service.runs_of("ocean").await;
    let epochs: Vec<&Value> = runs.iter().map(|run| &run["epoch"]).collect();
    assert_eq!(epochs, [&json!(1), &json!(1), &json!(2)]);
}

#[tokio::test]
async fn a_parameter_that_comes_opens_an_epoch_whose_runs_had_its_default() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_small(&catalogue).await;
    unpin(&service).await;
    let more = "[[parameters]]\nname = \"depth\"\nkind = \"ordered\"\nvalues = [1, 8]\ndefault = 8\n[[delivery";
    let text = sized("small", "[1, 2, 4]").replacen("[[delivery", more, 1);
    let text = text.replace("\"{size}\"", "\"{size}:{depth}\"");
    catalogue.put("small", &text);
    service.look_at_files().await;
    let run = service.job(ALICE, SMALL).runs(&service, 2.0).await;
    assert_eq!(run["epoch"], 2);
    assert_eq!(run["parametrization"], json!({ "size": 1, "depth": 8 }));
    assert!(run["reason"].as_str().unwrap().contains("2 of"), "{run}");
}

/// A study of `small` that has settled, and of which a gain is claimed.
async fn claimed(catalogue: &SiteCatalogue) -> TestService {
    const MOST_RUNS: u32 = 200;
    catalogue.put("small", &sized("small", "[1, 2, 4]"));
    let config = format!("{QUICK}{}", catalogue.configuration());
    let service = TestService::with(&config).await;
    for number in 1..=MOST_RUNS {
        goes_with_small(&service, number).await;
        let study = service.study("ocean").await;
        if study["phase"] == "settled" && study["gain"]["resolved"] == true {
            return service;
        }
    }
    panic!("no gain is claimed in {MOST_RUNS} runs");
}

/// A run that is the quicker the larger the size is.
async fn goes_with_small(service: &TestService, number: u32) -> Value {
    let noise = 1.0 + 0.01 * f64::from(number % 7);
    service
        .ran(ALICE, SMALL, |given| {
            let size = json!(given.parametrization)["size"].as_f64().unwrap();
            Course::completed(40.0 / (1.0 + size) * noise)
        })
        .await
}

#[tokio::test]
async fn a_settled_study_stays_so_with_its_claim_when_values_are_added() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = claimed(&catalogue).await;
    let before = service.study("ocean").await;
    catalogue.put("small", &sized("small", "[1, 2, 4, 8]"));
    service.look_at_files().await;
    // Before and after the first verdict of the new epoch.
    for number in 1..=2 {
        let run = service.job(ALICE, SMALL).start(&service).await;
        assert_eq!(run.phase, Phase::Settled);
        let study = service.study("ocean").await;
        assert_eq!(
            (&study["epoch"], &study["phase"]),
            (&json!(2), &json!("settled"))
        );
        for name in ["verdict", "share", "low", "high", "control_runs"] {
            assert_eq!(
                study["assessment"]["gain"][name], before["assessment"]["gain"][name],
                "{name} of {study}"
            );
        }
        assert_eq!(study["recommended"], before["recommended"]);
        goes_with_small(&service, number).await;
    }
    let gain = &service.study("ocean").await["assessment"]["gain"];
    assert!(
        gain["reason"].as_str().unwrap().contains("still offered"),
        "{gain}"
    );
    assert_eq!(service.database.number(SEARCH_AGAIN).await, 0);
}

#[tokio::test]
async fn what_is_no_longer_offered_is_not_shown_as_chosen() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = claimed(&catalogue).await;
    assert_eq!(service.study("ocean").await["recommended"]["size"], 4);
    catalogue.put("small", &sized("small", "[1, 2]"));
    service.look_at_files().await;
    service.job(ALICE, SMALL).start(&service).await;
    service.job(BOB, SMALL).start(&service).await;
    let listed = service.user(ADMIN).get("/v1/studies").await.ok();
    let listed = listed.as_array().unwrap();
    let owned = listed.iter().find(|one| one["uid"] == ALICE);
    let study = owned.unwrap();
    assert_eq!(
        (&study["epoch"], &study["phase"]),
        (&json!(2), &json!("settled"))
    );
    assert_ne!(study["recommended"]["size"], 4, "{study}");
    assert_ne!(study["differs"]["size"], 4, "{study}");
}

const SEARCH_AGAIN: &str = "select count(*) from audit where action = 'search-again'";

#[tokio::test]
async fn a_settled_study_that_searches_again_is_told_to_its_owner() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = claimed(&catalogue).await;
    catalogue.put("small", &sized("small", "[1, 2, 8]"));
    service.look_at_files().await;
    let run = service.job(ALICE, SMALL).start(&service).await;
    assert_ne!(run.phase, Phase::Settled);
    assert_eq!(
        service.study("ocean").await["assessment"]["gain"]["verdict"],
        "not_yet"
    );
    let lines = service.user(ALICE).get("/v1/audit").await.ok();
    assert_eq!(lines[0]["action"], "search-again", "{lines}");
    assert_eq!(lines[0]["detail"]["opened_epoch"], 2);
    assert!(lines[0]["why"].as_str().unwrap().contains("other values"));
}

#[tokio::test]
async fn an_admin_is_told_how_many_studies_search_in_what() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_small(&catalogue).await;
    service.job(BOB, SMALL).runs(&service, 2.0).await;
    let of = async |uid| service.user(uid).get("/v1/accelerators/small").await.ok();
    let told = of(ADMIN).await;
    let [in_use] = told["in_use"].as_array().unwrap().as_slice() else {
        panic!("one space: {told}");
    };
    assert_eq!(
        (&in_use["studies"], &in_use["settled"]),
        (&json!(2), &json!(false))
    );
    assert_eq!(in_use["space"][0]["values"], json!([1, 2, 4]));
    assert_eq!(of(ALICE).await.get("in_use"), None);
}

#[tokio::test]
async fn words_that_change_in_a_file_open_no_epoch() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_small(&catalogue).await;
    unpin(&service).await;
    let text = sized("small", "[1, 2, 4]").replace("An accelerator of a test", "Another title");
    catalogue.put("small", &text);
    service.look_at_files().await;
    assert_eq!(service.shown("small").await.ok()["title"], "Another title");
    let run = service.job(ALICE, SMALL).runs(&service, 2.0).await;
    assert_eq!(run["epoch"], 1, "{run}");
}

#[tokio::test]
async fn a_value_that_was_removed_is_pinned_by_nobody() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_small(&catalogue).await;
    unpin(&service).await;
    catalogue.put("small", &sized("small", "[1, 2]"));
    service.look_at_files().await;
    service.job(ALICE, SMALL).runs(&service, 2.0).await;
    let study = service.study_id("ocean").await;
    for uid in [ALICE, ADMIN] {
        let refused = service
            .pin(uid, study, &[("size", "4")])
            .await
            .bad_request();
        assert!(refused.contains("one of 1, 2"), "{refused}");
    }
}

#[tokio::test]
async fn a_pin_of_a_value_that_was_removed_ends_and_the_audit_says_so() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_small(&catalogue).await;
    catalogue.put("small", &sized("small", "[1, 2]"));
    service.look_at_files().await;
    let run = service.job(ALICE, SMALL).runs(&service, 2.0).await;
    assert_eq!(
        (&run["epoch"], &run["role"]),
        (&json!(2), &json!("baseline")),
        "{run}"
    );
    assert_eq!(service.study("ocean").await["pin"], Value::Null);
    let audit = service.user(ADMIN).get("/v1/audit").await.ok();
    let line = &audit[0];
    assert_eq!(
        (&line["action"], &line["uid"]),
        (&json!("unpin"), &json!(0)),
        "{audit}"
    );
    assert_eq!(
        line["why"],
        "the accelerator does not offer what was pinned any more"
    );
    assert_eq!(line["detail"]["parametrization"], json!({ "size": 4 }));
}

#[tokio::test]
async fn a_report_of_an_accelerator_that_has_gone_still_counts() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    catalogue.put("small", &sized("small", "[1, 2, 4]"));
    let service = catalogue.service().await;
    let job = service.job(ALICE, SMALL);
    let started = job.start(&service).await;
    catalogue.remove("small");
    service.look_at_files().await;
    assert_eq!(service.accelerators().await, ["romio"]);
    job.finish(&service, &job.reports(Some(&started), 2.0))
        .await;
    job.ends(&service, "COMPLETED", 2.0);
    service.poll().await;
    assert_eq!(
        service.run_of(job.job.job_id).await["run"]["state"],
        "counted"
    );
    let study = service.study("ocean").await;
    assert_eq!(
        (&study["accelerator"], &study["counted"]),
        (&json!("small"), &json!(1))
    );
}

#[tokio::test]
async fn a_start_with_an_accelerator_that_has_gone_is_refused_with_the_choices() {
    let catalogue = SiteCatalogue::with(&["romio", "scr"]);
    let service = with_small(&catalogue).await;
    catalogue.remove("small");
    service.look_at_files().await;
    let job = service.job(ALICE, SMALL);
    let refused = job
        .try_start(&service)
        .await
        .refused(422, "unknown_accelerator");
    assert_eq!(
        refused,
        "there is no accelerator \"small\"; choose one of: romio, scr"
    );
    // A report of a run that had no start has no space either.
    let report = job.reports(None, 2.0);
    let answer = service.node().post("/v1/runs/finish", &report).await;
    answer.refused(422, "unknown_accelerator");
    let refused = service
        .shown("small")
        .await
        .refused(422, "unknown_accelerator");
    assert!(refused.contains("choose one of: romio, scr"), "{refused}");
}

#[tokio::test]
async fn an_accelerator_that_comes_back_goes_on_with_its_study() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = with_small(&catalogue).await;
    catalogue.remove("small");
    service.look_at_files().await;
    catalogue.put("small", &sized("small", "[1, 2, 4]"));
    service.look_at_files().await;
    let run = service.job(ALICE, SMALL).runs(&service, 2.0).await;
    assert_eq!(
        (&run["epoch"], &run["role"]),
        (&json!(1), &json!("pinned")),
        "{run}"
    );
}

#[tokio::test]
async fn of_two_files_with_one_name_the_first_counts_and_the_doctor_tells_of_the_other() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    catalogue.put("a", &sized("small", "[1, 2]"));
    catalogue.put("b", &sized("small", "[1, 2, 4]"));
    let service = catalogue.service().await;
    let shown = service.shown("small").await.ok();
    assert_eq!(shown["space"][0]["values"], json!([1, 2]));
    let check = service.check("accelerators").await;
    let detail = check["detail"].as_str().unwrap();
    assert!(
        detail.contains(
            "b.toml: the accelerator \"small\" is described by another file too; rename one"
        ),
        "{detail}"
    );
}

#[tokio::test]
async fn a_directory_that_is_gone_changes_nothing_for_jobs() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = catalogue.service().await;
    let elsewhere = catalogue.0.path().with_extension("away");
    std::fs::rename(catalogue.0.path(), &elsewhere).unwrap();
    service.look_at_files().await;
    let check = service.check("accelerators").await;
    std::fs::rename(&elsewhere, catalogue.0.path()).unwrap();
    assert_eq!(check["state"], "failed");
    let detail = check["detail"].as_str().unwrap();
    assert!(
        detail.contains("cannot be read: ") && detail.contains("what was read before stays"),
        "{detail}"
    );
    let run = service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    assert_eq!(run["state"], "counted");
}

#[tokio::test]
async fn a_default_that_has_gone_is_told_to_nodes_and_to_the_doctor() {
    let catalogue = SiteCatalogue::with(&["romio", "scr"]);
    let service = catalogue.service().await;
    catalogue.remove("romio");
    service.look_at_files().await;
    let answer = service.job(ALICE, "app=ocean").try_start(&service).await;
    let refused = answer.refused(422, "unknown_accelerator");
    assert_eq!(
        refused,
        "there is no accelerator \"romio\"; choose one of: scr"
    );
    let check = service.check("accelerators").await;
    assert_eq!(check["state"], "failed");
    let detail = check["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("the default, romio, is not in the catalogue: "),
        "{detail}"
    );
    let fix = check["fix"].as_str().unwrap();
    assert!(
        fix.contains("[accelerators] default of service.toml"),
        "{fix}"
    );
    // Who names another is tuned.
    let job = service.job(ALICE, "app=ocean,accelerator=scr");
    assert_eq!(job.runs(&service, 2.0).await["state"], "counted");
}

#[tokio::test]
async fn a_reload_takes_another_directory_and_another_default() {
    let (before, after) = (
        SiteCatalogue::with(&["romio"]),
        SiteCatalogue::with(&["scr", "ompio"]),
    );
    let service = before.service().await;
    // The default is not there: all stays as it was.
    service.reload(&after.configuration()).await;
    assert_eq!(service.accelerators().await, ["romio"]);
    service
        .reload(&format!("{}default = \"scr\"\n", after.configuration()))
        .await;
    assert_eq!(service.accelerators().await, ["ompio", "ompio@risk", "scr"]);
    let run = service.job(ALICE, "app=ocean").runs(&service, 2.0).await;
    assert_eq!(run["accelerator"], "scr");
    let shown = service.shown("scr").await.ok();
    assert_eq!(shown["is_default"], true);
}

#[tokio::test]
async fn replicas_follow_the_files_each_by_itself() {
    let catalogue = SiteCatalogue::with(&["romio"]);
    let service = catalogue.service().await;
    let other = service.replica().await;
    catalogue.put("small", &sized("small", "[1, 2]"));
    service.look_at_files().await;
    assert_eq!(service.accelerators().await, ["romio", "small"]);
    assert_eq!(other.accelerators().await, ["romio"]);
    other.look_at_files().await;
    assert_eq!(other.accelerators().await, ["romio", "small"]);
}

#[tokio::test]
async fn what_an_accelerator_needs_and_was_tried_on_is_shown() {
    let service = TestService::new().await;
    let shown = service.shown("page-cache").await.ok();
    assert_eq!(shown["tried_on"], "Linux 6.18");
    assert_eq!(shown["takes_effect"], "at once");
    let needs = shown["needs"].as_array().unwrap();
    assert_eq!(needs.len(), 2, "{shown}");
    let list = service.user(BOB).get("/v1/accelerators").await.ok();
    let defaults = list.as_array().unwrap().iter();
    let defaults: Vec<&Value> = defaults.filter(|one| one["is_default"] == true).collect();
    assert_eq!(defaults.len(), 1);
    assert_eq!(defaults[0]["name"], "romio");
}
