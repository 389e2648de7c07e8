//! The HTTP API.

mod accelerators;
mod applications;
mod audit;
mod checked;
mod deciding;
mod doctor;
mod error;
mod health;
mod naming;
mod orders;
mod outcomes;
mod preview;
mod reason;
mod report;
mod retention;
mod runs;
mod signing;
mod site_defaults;
mod studies;
mod summary;
mod transfer;
mod warm_start;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::{get, post};
use io_autotune_catalogue::{Accelerator, LiveCatalogue, LiveRules, Resolved, canonical_name};
use io_autotune_engine::{Choice, Settings};
use io_autotune_protocol::credentials::Credentials;
use io_autotune_protocol::{Job, Request, StartAnswer};
use io_autotune_store::{Budgets, Store, StudyState};
use tokio::sync::Semaphore;
use tower_http::trace::TraceLayer;
use utoipa::OpenApi;

pub(crate) use self::error::ApiError;
pub(crate) use self::health::LastReadiness;
pub(crate) use self::report::ReportConfig;
pub(crate) use self::signing::{AT_WORK, CredentialCalls, LONG_BODIES};
use crate::access::Access;
use crate::admission::Admissions;
use crate::assess::Reckoning;
use crate::clock::Clock;
use crate::decide::Snapshot;
use crate::default_accelerator;
use crate::door::Door;
use crate::exploring::ExploringConfig;
use crate::failed_work::Apart;
use crate::hosts::Hosts;
use crate::launches::Launches;
use crate::metrics::{self, Metrics};
use crate::quota::Quotas;
use crate::retention::RetentionConfig;
use crate::sharing::Sharing;
use crate::slurm::Cluster;
use crate::slurm::associations::LiveAssociations;
use crate::surrogates::SurrogateCaches;
use crate::tls::Certificate;

/// Draws from [0, 1).
pub(crate) type Draw = Arc<dyn Fn() -> f64 + Send + Sync>;

/// The service behind one of its doors. Fields that are not behind an `Arc` are the door's own.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) door: Door,
    pub(crate) store: Store,
    pub(crate) credential_calls: CredentialCalls,
    /// Turns of nodes' short requests, at the nodes' door alone.
    pub(crate) at_work: Arc<Semaphore>,
    pub(crate) long_bodies: Arc<Semaphore>,
    /// One for each door: readers of many studies must not displace those that jobs start.
    pub(crate) surrogates: Arc<SurrogateCaches>,
    pub(crate) ready: Arc<LastReadiness>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) catalogue: Arc<LiveCatalogue>,
    pub(crate) rules: Arc<LiveRules>,
    /// The canonical name of the accelerator of requests that name none.
    pub(crate) default_accelerator: String,
    /// The accelerators for such requests where the default one cannot matter, in the order in
    /// which they are tried.
    pub(crate) otherwise: Arc<[String]>,
    pub(crate) settings: Settings,
    pub(crate) exploring: ExploringConfig,
    /// The most studies of a user.
    pub(crate) most_studies: u32,
    pub(crate) access: Arc<Access>,
    pub(crate) report: ReportConfig,
    pub(crate) credentials: Arc<dyn Credentials>,
    pub(crate) clusters: Arc<[Arc<Cluster>]>,
    /// The users of each account, for the clusters whose associations are asked for.
    pub(crate) associations: Arc<[Arc<LiveAssociations>]>,
    pub(crate) sharing: Arc<Sharing>,
    /// The doctor reports runs that have been in flight for longer.
    pub(crate) stuck_after: Duration,
    pub(crate) retention: RetentionConfig,
    pub(crate) admissions: Arc<Admissions<Snapshot>>,
    /// The reports of nodes about themselves.
    pub(crate) hosts: Arc<Hosts>,
    /// The work at which sweeps have failed.
    pub(crate) apart: Arc<Apart>,
    pub(crate) launches: Arc<Launches<StartAnswer>>,
    /// The certificate for TLS, if there is one.
    pub(crate) certificate: Certificate,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Draws for the choice of control runs; from the system's randomness, so that nobody can
    /// predict them.
    pub(crate) draw: Draw,
}

impl Service {
    /// The cluster of this name. The names come from jobs: a name that is not one of the service's
    /// is refused.
    fn cluster(&self, name: &str) -> Result<&Arc<Cluster>, ApiError> {
        let mut clusters = self.clusters.iter();
        let found = clusters.find(|cluster| cluster.sources.cluster == name);
        found.ok_or_else(|| {
            let names = self.clusters.iter();
            let names: Vec<&str> = names.map(|one| &*one.sources.cluster).collect();
            ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "unknown_cluster",
                format!(
                    "the service has no cluster {name:?}: it has {} ([slurm] of service.toml)",
                    names.join(", ")
                ),
            )
        })
    }

    /// The name of a wanted cluster, if it is one of the service's.
    fn wanted_cluster(&self, name: Option<String>) -> Result<Option<String>, ApiError> {
        if let Some(name) = &name {
            self.cluster(name)?;
        }
        Ok(name)
    }

    /// A study's cluster, for lists; `None` where there is only one.
    fn shown_cluster(&self, name: &str) -> Option<String> {
        (self.clusters.len() > 1).then(|| name.to_owned())
    }

    /// A node's name, with the cluster if there are several, as two may have a node of the same
    /// name.
    fn node_name(&self, job: &Job) -> String {
        match self.clusters.len() {
            1 => job.node.clone(),
            _ => format!("{}/{}", job.cluster, job.node),
        }
    }

    /// A user's request with its application by the site's rules.
    async fn resolved(&self, uid: u32, request: Request) -> Result<Resolved, ApiError> {
        let is_given = request.app.is_some();
        let resolved = self.rules.current().resolve(request);
        match is_given {
            true => Ok(resolved),
            false => naming::resumed(&self.store, uid, resolved).await,
        }
    }

    pub(crate) fn accelerator(&self, name: Option<&str>) -> Result<Arc<Accelerator>, ApiError> {
        let name = name.unwrap_or(&self.default_accelerator);
        Ok(self.catalogue.current().find(name)?)
    }

    /// The site's budgets for exploring at present, if it has any.
    fn budgets(&self) -> Option<Budgets> {
        self.exploring.budgets(self.clock.now())
    }

    /// The settings and the surrogates by which studies are assessed.
    pub(crate) fn reckoning(&self) -> Reckoning<'_> {
        Reckoning {
            settings: &self.settings,
            surrogates: &self.surrogates,
        }
    }

    /// The choice of another accelerator that a study of the default one leaves for jobs that name
    /// none.
    fn choice(&self, state: &StudyState, nodes: u32) -> Option<Choice> {
        let candidates =
            default_accelerator::candidates(&self.catalogue.current(), &self.otherwise);
        let default = &self.default_accelerator;
        default_accelerator::choice(state, default, candidates, &self.settings, nodes)
    }

    /// The canonical name, also of an accelerator that the catalogue lacks.
    fn accelerator_name(&self, name: Option<&str>) -> String {
        canonical_name(name.unwrap_or(&self.default_accelerator))
    }
}

/// The description of the API, as committed in docs/openapi.json.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "io-autotuned",
        description = "The tuner service. Every request but health, ready and openapi.json carries a credential by MUNGE or SACK; see docs/protocol.md.",
        license(name = "Apache-2.0")
    ),
    paths(
        accelerators::list,
        accelerators::show,
        site_defaults::show,
        applications::rules,
        applications::names,
        preview::preview,
        runs::start,
        runs::finish,
        runs::over,
        runs::directives,
        runs::history,
        runs::explain,
        runs::replay,
        outcomes::store,
        studies::list,
        studies::show,
        studies::pin,
        studies::unpin,
        studies::reset,
        studies::objective,
        studies::accept,
        warm_start::begin,
        transfer::export,
        transfer::chunk,
        transfer::end,
        orders::list,
        orders::order,
        orders::end,
        audit::list,
        audit::undo,
        doctor::doctor,
        retention::remove,
        report::file,
        report::mine,
        health::health,
        health::ready,
        health::openapi,
    )
)]
struct Description;

pub(crate) fn description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

pub(crate) fn router(service: Service) -> Router {
    let service = Arc::new(service);
    let (open, signed) = match service.door {
        Door::Nodes => (
            Router::new().route("/v1/health", get(health::health)),
            nodes_routes(),
        ),
        Door::Users => (
            open_routes().layer(middleware::from_fn_with_state(
                Arc::clone(&service),
                health::counted,
            )),
            users_routes().merge(nodes_routes()),
        ),
    };
    let signed = signed
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_path)
        // The layer below has limits of its own, by the sender's role.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(
            Arc::clone(&service),
            signing::signed,
        ));
    open.merge(signed)
        // A failure is logged where its cause is known, and seldom if anybody can cause it.
        .layer(TraceLayer::new_for_http().on_failure(()))
        .layer(middleware::from_fn_with_state(
            Arc::clone(&service.metrics),
            metrics::counted,
        ))
        .with_state(service)
}

fn open_routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/v1/health", get(health::health))
        .route("/v1/ready", get(health::ready))
        .route("/v1/openapi.json", get(health::openapi))
}

/// The endpoints for root of the nodes. The users' door has them too, for a site with one address.
fn nodes_routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/v1/runs/start", post(runs::start))
        .route("/v1/runs/finish", post(runs::finish))
        .route("/v1/runs/over", post(runs::over))
}

fn users_routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/v1/accelerators", get(accelerators::list))
        .route("/v1/accelerators/{name}", get(accelerators::show))
        .route("/v1/site-defaults/{name}", get(site_defaults::show))
        .route("/v1/applications/rules", get(applications::rules))
        .route("/v1/applications/names", get(applications::names))
        .route("/v1/preview", post(preview::preview))
        .route("/v1/runs", get(runs::history))
        .route("/v1/runs/{job_id}", get(runs::explain))
        .route("/v1/runs/{job_id}/replay", get(runs::replay))
        .route("/v1/runs/directives", post(runs::directives))
        .route("/v1/outcomes", post(outcomes::store))
        .route("/v1/doctor", get(doctor::doctor))
        .route("/v1/report/{file}", get(report::file))
        .route("/v1/report/mine", get(report::mine))
        .route("/v1/studies", get(studies::list))
        .route("/v1/studies/{study_id}", get(studies::show))
        .route("/v1/studies/{study_id}/export", get(transfer::export))
        .route("/v1/imports/{upload}", post(transfer::chunk))
        .route("/v1/imports/{upload}/end", post(transfer::end))
        .route("/v1/studies/{study_id}/pin", post(studies::pin))
        .route("/v1/studies/{study_id}/unpin", post(studies::unpin))
        .route("/v1/studies/{study_id}/reset", post(studies::reset))
        .route("/v1/studies/{study_id}/objective", post(studies::objective))
        .route("/v1/studies/{study_id}/accept", post(studies::accept))
        .route("/v1/studies/{study_id}/warm-start", post(warm_start::begin))
        .route("/v1/orders", get(orders::list).post(orders::order))
        .route("/v1/orders/end", post(orders::end))
        .route("/v1/retention", post(retention::remove))
        .route("/v1/audit", get(audit::list))
        .route("/v1/audit/{audit_id}/undo", post(audit::undo))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_committed_description_is_current() {
        let committed = include_str!("../../../../docs/openapi.json");
        let current = description().to_pretty_json().unwrap() + "\n";
        assert!(
            committed == current,
            "docs/openapi.json is stale: run `make openapi`"
        );
    }

    #[test]
    fn every_schema_that_is_referred_to_is_described() {
        let text = description().to_json().unwrap();
        let schemas = description().components.unwrap().schemas;
        let referred = text.split("#/components/schemas/").skip(1);
        for name in referred.filter_map(|rest| rest.split('"').next()) {
            assert!(schemas.contains_key(name), "{name}");
        }
    }

    /// axum does not list its routes.
    #[test]
    fn every_route_is_described_and_only_they_are() {
        let routes = include_str!("mod.rs").split(".route(\"").skip(1);
        let routes: BTreeSet<&str> = routes.filter_map(|rest| rest.split('"').next()).collect();
        let described = description();
        let described: BTreeSet<&str> = described.paths.paths.keys().map(String::as_str).collect();
        assert_eq!(routes.len(), described.len(), "{routes:?}");
        assert!(described.is_subset(&routes), "{described:?}");
    }
}
