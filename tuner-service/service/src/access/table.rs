//! The table of the rights of access, endpoint by role. `docs/access.md` has the same table.

use axum::http::Method;

use crate::quota::Cost;

/// A role of a caller, by its credential and `[access]` of service.toml. Everyone is a user; a
/// caller may have several roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Everyone with a valid credential.
    User,
    /// `report_readers`: reads the nightly report.
    ReportReader,
    /// `coordinators`: reads and changes what members of an account charge to it, if Slurm has the
    /// caller as the account's coordinator.
    Coordinator,
    /// `operators`: reads everyone's.
    Operator,
    /// `admins`: reads and changes everyone's.
    Admin,
    /// Root of a node: starts, finishes and checks runs.
    Node,
    /// `collectors`: delivers how jobs ended.
    Collector,
    /// `burst_buffers`: SlurmUser, who completes burst buffers' directives before nodes are asked.
    BurstBuffer,
}

impl Role {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::User,
        Self::ReportReader,
        Self::Coordinator,
        Self::Operator,
        Self::Admin,
        Self::Node,
        Self::Collector,
        Self::BurstBuffer,
    ];

    /// Returns true if the role acts for jobs, whose number Slurm bounds, and not for a user who
    /// asks.
    pub(crate) fn speaks_for_jobs(self) -> bool {
        matches!(self, Self::Node | Self::Collector | Self::BurstBuffer)
    }
}

/// The studies and runs about which an endpoint answers, or which it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grant {
    /// The caller's own.
    Own,
    /// The caller's own, and those of accounts that the caller coordinates.
    Account,
    /// Everyone's.
    All,
}

use Grant::{Account, All, Own};
use Role::{Admin, BurstBuffer, Collector, Coordinator, Node, Operator, ReportReader, User};

/// An endpoint that asks for a credential.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// The path as the router and the API's description write it.
    pub(crate) path: &'static str,
    pub(crate) grants: &'static [(Role, Grant)],
    /// The message for a caller without a grant.
    pub(crate) refusal: &'static str,
    /// True if the answer is a page of runs, of studies or of the audit's lines, or a study in
    /// full.
    is_listing: bool,
    /// True if each reading of the request has a further effect; other requests may be sent any
    /// number of times.
    is_report: bool,
    /// True if what the request writes is stored with its nonce, so that the statement itself finds
    /// a second reading.
    pub(crate) keeps_nonce: bool,
    /// True if it takes a file in pieces from those to whom it is granted.
    pub(crate) is_import: bool,
}

type Grants = &'static [(Role, Grant)];

const fn get(path: &'static str, grants: Grants, refusal: &'static str) -> Endpoint {
    endpoint(Method::GET, path, grants, refusal)
}

const fn post(path: &'static str, grants: Grants, refusal: &'static str) -> Endpoint {
    endpoint(Method::POST, path, grants, refusal)
}

const fn endpoint(
    method: Method,
    path: &'static str,
    grants: Grants,
    refusal: &'static str,
) -> Endpoint {
    Endpoint {
        method,
        path,
        grants,
        refusal,
        is_listing: false,
        is_report: false,
        keeps_nonce: false,
        is_import: false,
    }
}

impl Endpoint {
    const fn listing(mut self) -> Self {
        self.is_listing = true;
        self
    }

    const fn import(mut self) -> Self {
        self.is_import = true;
        self
    }

    const fn report(mut self) -> Self {
        self.is_report = true;
        self
    }

    const fn keeping_nonce(mut self) -> Self {
        self.keeps_nonce = true;
        self
    }
}

/// For every user, as the answer is about the site.
const SITE: &[(Role, Grant)] = &[(User, All)];
/// For every user; an admin's answer has more.
const SITE_AND_ADMINS: &[(Role, Grant)] = &[(User, All), (Admin, All)];
/// For every user; what is of single studies only for those who read everyone's.
const SITE_AND_READERS: &[(Role, Grant)] = &[(User, All), (Operator, All), (Admin, All)];
/// To read: one's own, or everyone's.
const READ_OWN: &[(Role, Grant)] = &[(User, Own), (Operator, All), (Admin, All)];
/// To read: one's own, an account's, or everyone's.
const READ: &[(Role, Grant)] = &[
    (User, Own),
    (Coordinator, Account),
    (Operator, All),
    (Admin, All),
];
/// To change: one's own, an account's, or everyone's.
const CHANGE: &[(Role, Grant)] = &[(User, Own), (Coordinator, Account), (Admin, All)];
const ADMINS: &[(Role, Grant)] = &[(Admin, All)];
const NODE: &[(Role, Grant)] = &[(Node, All)];
const BEFORE_NODES: &[(Role, Grant)] = &[(Node, All), (BurstBuffer, All)];

const NOBODY: &str = "";
const NODES: &str = "only root of a node starts and finishes runs";
const DIRECTIVES: &str = "only the burst buffer's account completes directives: [access] burst_buffers of service.toml names it";
const COLLECTORS: &str =
    "only a collector delivers outcomes: [access] collectors of service.toml names its account";
const REPORT: &str = "the report is about everyone's jobs: [access] report_readers of service.toml names who may read it";
pub(crate) const IMPORTERS: &str =
    "only admins import studies: [access] admins of service.toml names them";
const RETENTION: &str = "only admins remove runs: [access] admins of service.toml names them";
const DOCTOR: &str = "only admins and operators ask what the service says of itself: [access] of service.toml names them";

/// The table.
pub(crate) static ENDPOINTS: &[Endpoint] = &[
    get("/v1/accelerators", SITE, NOBODY),
    get("/v1/accelerators/{name}", SITE_AND_ADMINS, NOBODY),
    get("/v1/site-defaults/{name}", SITE_AND_READERS, NOBODY),
    get("/v1/applications/rules", SITE, NOBODY),
    get("/v1/applications/names", READ_OWN, NOBODY),
    post("/v1/preview", &[(User, Own)], NOBODY),
    get("/v1/runs", READ, NOBODY).listing(),
    get("/v1/runs/{job_id}", READ, NOBODY),
    get("/v1/runs/{job_id}/replay", READ, NOBODY),
    get("/v1/studies", READ, NOBODY).listing(),
    get("/v1/studies/{study_id}", READ, NOBODY).listing(),
    get("/v1/studies/{study_id}/export", READ, NOBODY).listing(),
    post("/v1/imports/{upload}", ADMINS, IMPORTERS).import(),
    post("/v1/imports/{upload}/end", ADMINS, IMPORTERS).import(),
    post("/v1/studies/{study_id}/pin", CHANGE, NOBODY),
    post("/v1/studies/{study_id}/unpin", CHANGE, NOBODY),
    post("/v1/studies/{study_id}/reset", CHANGE, NOBODY),
    post("/v1/studies/{study_id}/objective", CHANGE, NOBODY),
    post("/v1/studies/{study_id}/warm-start", CHANGE, NOBODY),
    post("/v1/studies/{study_id}/accept", CHANGE, NOBODY),
    get("/v1/orders", READ, NOBODY).listing(),
    post("/v1/orders", CHANGE, NOBODY),
    post("/v1/orders/end", CHANGE, NOBODY),
    get("/v1/audit", READ, NOBODY).listing(),
    post("/v1/audit/{audit_id}/undo", CHANGE, NOBODY),
    post("/v1/retention", ADMINS, RETENTION),
    get("/v1/doctor", &[(Operator, All), (Admin, All)], DOCTOR),
    get(
        "/v1/report/{file}",
        &[(ReportReader, All), (Operator, All), (Admin, All)],
        REPORT,
    ),
    get("/v1/report/mine", &[(User, Own)], NOBODY),
    post("/v1/runs/start", BEFORE_NODES, NODES),
    post("/v1/runs/directives", BEFORE_NODES, DIRECTIVES),
    post("/v1/runs/finish", NODE, NODES)
        .report()
        .keeping_nonce(),
    post("/v1/runs/over", NODE, NODES),
    post("/v1/outcomes", &[(Node, All), (Collector, All)], COLLECTORS).report(),
];

impl Endpoint {
    /// The endpoint of a request; `None`: there is none.
    pub(crate) fn of(method: &Method, path: &str) -> Option<&'static Self> {
        // HEAD is answered by GET's handler.
        let method = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        let mut found = ENDPOINTS
            .iter()
            .filter(|one| one.method == *method && one.fits(path));
        // A path that is spelt out goes before one with a parameter.
        let first = found.next()?;
        Some(found.find(|one| one.path == path).unwrap_or(first))
    }

    fn fits(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let fits = self.path.split('/').all(|wanted| match parts.next() {
            Some(part) => part == wanted || (wanted.starts_with('{') && !part.is_empty()),
            None => false,
        });
        fits && parts.next().is_none()
    }

    /// Returns true if it changes what studies do, as every change that an admin may make does.
    pub(crate) fn steers(&self) -> bool {
        self.method == Method::POST && self.grants.iter().any(|(role, _)| *role == Admin)
    }

    /// How much a request counts of a user's quota.
    pub(crate) fn cost(&self) -> Cost {
        if self.steers() {
            Cost::Steering
        } else if self.is_listing {
            Cost::Listing
        } else {
            Cost::Reading
        }
    }

    /// Returns true if a request may be read only once, by any of the replicas.
    pub(crate) fn acts_once(&self) -> bool {
        self.steers() || self.is_report
    }

    /// The widest grant of the given roles; `None` if they have none.
    pub(crate) fn grant(&self, is: impl Fn(Role) -> bool) -> Option<Grant> {
        let held = self.grants.iter().filter(|(role, _)| is(*role));
        held.map(|(_, grant)| *grant).max()
    }
}
