//! Access: the roles of callers by the configuration, and the [table] of what is granted to each.

pub(crate) mod table;

use std::net::IpAddr;
use std::sync::Arc;

use io_autotune_store::Coordinated;
use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use serde::{Deserialize, Serialize};

use self::table::{Endpoint, Grant, Role};
use crate::reader::{Reader, Seen};
use crate::slurm::associations::LiveAssociations;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AccessConfig {
    admins: Vec<Named>,
    /// Readers of everyone's studies and runs.
    operators: Vec<Named>,
    /// Readers of the nightly report besides admins and operators.
    report_readers: Vec<Named>,
    /// An account's coordinators, as slurmdbd has them, see and steer the studies that its members
    /// charge to it.
    pub(crate) coordinators: bool,
    /// Root of a host starts and finishes runs only on the node that Slurm has at its address.
    pub(crate) check_origins: bool,
    /// The accounts that deliver the job-completion script's output.
    collectors: Vec<Named>,
    /// The accounts that complete burst buffers' directives: SlurmUser.
    burst_buffers: Vec<Named>,
}

/// Who has a role: a uid, a login name, or the members of a group as `@NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a uid, a login name, or a group as \"@NAME\" is expected"
)]
enum Named {
    Uid(u32),
    Name(String),
}

impl Named {
    /// The group that is meant, if one is.
    fn group(&self) -> Option<&str> {
        match self {
            Self::Uid(_) => None,
            Self::Name(name) => name.strip_prefix('@'),
        }
    }

    /// The login name that is meant, if one is.
    fn login(&self) -> Option<&str> {
        match self {
            Self::Uid(_) => None,
            Self::Name(name) => (!name.starts_with('@')).then_some(name),
        }
    }
}

/// The caller of a request, authenticated by its credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    /// The host from which the request comes: by the credential, else by the connection. `None`:
    /// this host.
    pub(crate) origin: Option<IpAddr>,
}

impl Caller {
    /// Root of a node may start and finish any job's run.
    pub(crate) fn is_root(self) -> bool {
        self.uid == 0
    }
}

#[derive(Debug)]
pub(crate) struct Access {
    config: AccessConfig,
    /// The associations of each cluster; empty if coordinators have no role.
    associations: Arc<[Arc<LiveAssociations>]>,
}

impl Access {
    /// The associations are left out unless coordinators have a role.
    pub(crate) fn new(config: AccessConfig, associations: Arc<[Arc<LiveAssociations>]>) -> Self {
        let is_role = config.coordinators;
        Self {
            associations: if is_role {
                associations
            } else {
                Arc::default()
            },
            config,
        }
    }

    /// The studies and runs that a reader may see now.
    pub(crate) fn seen(&self, reader: Reader) -> Seen {
        let members_of = |live: &Arc<LiveAssociations>, uid| {
            let members = live.current().members_coordinated_by(uid).into_iter();
            let on = live.cluster.clone();
            members.map(move |(member, account)| (on.clone(), member, account))
        };
        let coordinated = match (reader, &self.associations[..]) {
            (Reader::Coordinator(uid), of_clusters @ [_, ..]) => Some(Coordinated {
                members: of_clusters
                    .iter()
                    .flat_map(|live| members_of(live, uid))
                    .collect(),
            }),
            _ => None,
        };
        Seen {
            owner_uid: reader.owner(),
            coordinated,
        }
    }

    /// The rights of a caller at an endpoint: whose studies and runs they see and change there.
    /// `None`: none.
    pub(crate) async fn reader(&self, caller: Caller, endpoint: &Endpoint) -> Option<Reader> {
        let mut held = vec![Role::User];
        // Groups are looked up only where they matter.
        for (role, _) in endpoint.grants {
            if self.has(caller, *role).await {
                held.push(*role);
            }
        }
        Some(match endpoint.grant(|role| held.contains(&role))? {
            Grant::Own => Reader::User(caller.uid),
            Grant::Account => Reader::Coordinator(caller.uid),
            Grant::All if held.contains(&Role::Admin) => Reader::Admin,
            Grant::All => Reader::Operator,
        })
    }

    /// Returns true if a caller has no quota here and may send long bodies: root everywhere, others
    /// where the table grants the endpoint to a role that acts for jobs or imports.
    pub(crate) async fn is_trusted(&self, caller: Caller, endpoint: Option<&Endpoint>) -> bool {
        if caller.is_root() {
            return true;
        }
        let Some(endpoint) = endpoint else {
            return false;
        };
        let trusted = |role: Role| role.speaks_for_jobs() || endpoint.is_import;
        for (role, _) in endpoint.grants.iter().filter(|(role, _)| trusted(*role)) {
            if self.has(caller, *role).await {
                return true;
            }
        }
        false
    }

    async fn has(&self, caller: Caller, role: Role) -> bool {
        let AccessConfig {
            admins,
            operators,
            report_readers,
            coordinators: _,
            check_origins: _,
            collectors,
            burst_buffers,
        } = &self.config;
        match role {
            Role::User => true,
            Role::ReportReader => is_one_of(caller, report_readers).await,
            Role::Coordinator => self
                .associations
                .iter()
                .any(|live| live.current().coordinated_by(caller.uid).next().is_some()),
            Role::Operator => is_one_of(caller, operators).await,
            Role::Admin => is_one_of(caller, admins).await,
            Role::Node => caller.is_root(),
            // Root may report the end of any job, and start any job's run, anyway.
            Role::Collector => caller.is_root() || is_one_of(caller, collectors).await,
            Role::BurstBuffer => caller.is_root() || is_one_of(caller, burst_buffers).await,
        }
    }
}

async fn is_one_of(caller: Caller, named: &[Named]) -> bool {
    if named.contains(&Named::Uid(caller.uid)) {
        return true;
    }
    if named.iter().all(|one| matches!(one, Named::Uid(_))) {
        return false;
    }
    let named = named.to_owned();
    // The name service may use the network, so not on the runtime's threads.
    tokio::task::spawn_blocking(move || {
        let mut logins = named.iter().filter_map(Named::login);
        logins.any(|name| is_login(caller.uid, name)) || is_member(caller.uid, &named)
    })
    .await
    .unwrap_or(false)
}

fn is_login(uid: u32, name: &str) -> bool {
    let user = User::from_name(name).ok().flatten();
    user.is_some_and(|user| user.uid.as_raw() == uid)
}

fn is_member(uid: u32, named: &[Named]) -> bool {
    let mut groups = named.iter().filter_map(Named::group).peekable();
    if groups.peek().is_none() {
        return false;
    }
    let Ok(Some(user)) = User::from_uid(Uid::from_raw(uid)) else {
        return false;
    };
    let Ok(name) = std::ffi::CString::new(user.name) else {
        return false;
    };
    let Ok(member_of) = getgrouplist(&name, user.gid) else {
        return false;
    };
    groups
        .filter_map(|group| Group::from_name(group).ok().flatten())
        .any(|group| member_of.contains(&Gid::from_raw(group.gid.as_raw())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use axum::http::Method;

    use super::table::ENDPOINTS;
    use super::*;
    use crate::quota::Cost;

    fn caller(uid: u32) -> Caller {
        Caller { uid, origin: None }
    }

    fn nobody() -> Access {
        Access::new(AccessConfig::default(), Arc::default())
    }

    fn by(config: AccessConfig) -> Access {
        Access::new(config, Arc::default())
    }

    /// A site at which bob, uid 1002, coordinates alice's accounts, if `is_role` makes that a role.
    fn with_coordinators(is_role: bool) -> Access {
        let config = AccessConfig {
            coordinators: is_role,
            ..AccessConfig::default()
        };
        Access::new(config, [Arc::new(LiveAssociations::sample())].into())
    }

    /// Uid 42, which has this role and otherwise only that of a user.
    fn with(role: Role) -> (Access, Caller) {
        let mut config = AccessConfig::default();
        match role {
            Role::User => {}
            Role::ReportReader => config.report_readers = vec![Named::Uid(42)],
            Role::Coordinator => return (with_coordinators(true), caller(1002)),
            Role::Operator => config.operators = vec![Named::Uid(42)],
            Role::Admin => config.admins = vec![Named::Uid(42)],
            Role::Node => return (nobody(), caller(0)),
            Role::Collector => config.collectors = vec![Named::Uid(42)],
            Role::BurstBuffer => config.burst_buffers = vec![Named::Uid(42)],
        }
        (by(config), caller(42))
    }

    #[tokio::test]
    async fn admins_are_those_configured_by_uid_or_group() {
        let by_uid = by(AccessConfig {
            admins: vec![Named::Uid(42)],
            ..AccessConfig::default()
        });
        assert!(by_uid.has(caller(42), Role::Admin).await);
        assert!(!by_uid.has(caller(43), Role::Admin).await);
        assert!(
            !by_uid.has(caller(0), Role::Admin).await,
            "root of a node is no admin by itself"
        );
        for (role, config) in [
            (
                Role::Admin,
                AccessConfig {
                    admins: vec![Named::Name("@root".into())],
                    ..AccessConfig::default()
                },
            ),
            (
                Role::Operator,
                AccessConfig {
                    operators: vec![Named::Name("@root".into())],
                    ..AccessConfig::default()
                },
            ),
            (
                Role::ReportReader,
                AccessConfig {
                    report_readers: vec![Named::Name("@root".into())],
                    ..AccessConfig::default()
                },
            ),
        ] {
            let by_group = by(config);
            assert!(by_group.has(caller(0), role).await, "{role:?}");
            assert!(!by_group.has(caller(65534), role).await, "{role:?}");
        }
    }

    #[tokio::test]
    async fn collectors_are_root_and_whoever_is_named_by_name_or_uid() {
        let access = by(AccessConfig {
            collectors: vec![
                Named::Uid(42),
                Named::Name("nobody".into()),
                Named::Name("no-such-account".into()),
            ],
            ..AccessConfig::default()
        });
        for (uid, expected) in [(0, true), (42, true), (65534, true), (43, false)] {
            assert_eq!(
                access.has(caller(uid), Role::Collector).await,
                expected,
                "{uid}"
            );
        }
        assert!(!access.has(caller(42), Role::Admin).await);
        assert!(
            !access.has(caller(42), Role::BurstBuffer).await,
            "each role is its own"
        );
    }

    /// Attack (others): Somebody without the role starts or finishes runs, tells outcomes, or
    /// completes directives.
    #[tokio::test]
    async fn directives_are_completed_by_root_and_the_accounts_named_for_it() {
        let access = by(AccessConfig {
            burst_buffers: vec![Named::Name("nobody".into())],
            ..AccessConfig::default()
        });
        for (uid, expected) in [(0, true), (65534, true), (42, false)] {
            assert_eq!(
                access.has(caller(uid), Role::BurstBuffer).await,
                expected,
                "{uid}"
            );
        }
        assert!(!access.has(caller(65534), Role::Collector).await);
        assert!(!access.has(caller(65534), Role::Admin).await);
    }

    /// Each role alone at each endpoint: exactly what the table grants it, or what it grants every
    /// user, is granted.
    ///
    /// Attack (others): Each role asks at each endpoint.
    /// Outcome: It may do exactly what the table grants; a refusal comes before the body is read.
    #[tokio::test]
    async fn each_role_may_do_at_each_endpoint_what_the_table_says_and_nothing_else() {
        for role in Role::ALL {
            let (access, caller) = with(role);
            for endpoint in ENDPOINTS {
                let of = |wanted| {
                    let mut grants = endpoint.grants.iter();
                    grants
                        .find(|(role, _)| *role == wanted)
                        .map(|(_, grant)| *grant)
                };
                // Root delivers outcomes as any node does, and a user's grants are everyone's.
                let expected = match of(role).max(of(Role::User)) {
                    None => None,
                    Some(Grant::Own) => Some(Reader::User(caller.uid)),
                    Some(Grant::Account) => Some(Reader::Coordinator(caller.uid)),
                    Some(Grant::All) if role == Role::Admin && of(role).is_some() => {
                        Some(Reader::Admin)
                    }
                    Some(Grant::All) => Some(Reader::Operator),
                };
                let found = access.reader(caller, endpoint).await;
                let what = format!("{role:?} at {} {}", endpoint.method, endpoint.path);
                assert_eq!(found, expected, "{what}");
                assert!(found.is_some() || !endpoint.refusal.is_empty(), "{what}");
            }
        }
    }

    #[tokio::test]
    async fn a_coordinator_sees_what_members_charge_to_the_account_and_only_if_that_is_a_role() {
        let access = with_coordinators(true);
        let members = |uid| {
            access
                .seen(Reader::Coordinator(uid))
                .coordinated
                .unwrap()
                .members
        };
        let pair = |uid, account: &str| ("alpha".to_owned(), uid, account.to_owned());
        assert_eq!(
            members(1002),
            [
                pair(1002, "chemistry"),
                pair(1001, "optics"),
                pair(1001, "physics")
            ]
        );
        assert_eq!(members(7), []);
        assert_eq!(access.seen(Reader::Coordinator(7)).owner_uid, Some(7));
        for reader in [Reader::User(1002), Reader::Operator, Reader::Admin] {
            assert_eq!(access.seen(reader).coordinated, None, "{reader:?}");
        }
        for (is_role, uid, expected) in [
            (true, 1002, true),
            (true, 1001, true),
            (true, 0, false),
            (true, 7, false),
            (false, 1002, false),
        ] {
            let access = with_coordinators(is_role);
            let has = access.has(caller(uid), Role::Coordinator).await;
            assert_eq!(has, expected, "{uid}, {is_role}");
        }
    }

    #[tokio::test]
    async fn whoever_speaks_for_jobs_or_imports_has_no_quota_where_the_table_grants_it() {
        for role in Role::ALL {
            let (access, caller) = with(role);
            for endpoint in ENDPOINTS {
                let granted = endpoint.grants.iter().any(|(granted, _)| *granted == role);
                let expected = match role {
                    Role::Node => true,
                    Role::Collector | Role::BurstBuffer => granted,
                    Role::Admin => granted && endpoint.is_import,
                    _ => false,
                };
                let found = access.is_trusted(caller, Some(endpoint)).await;
                let what = format!("{role:?} at {} {}", endpoint.method, endpoint.path);
                assert_eq!(found, expected, "{what}");
            }
            let nowhere = access.is_trusted(caller, None).await;
            assert_eq!(nowhere, role == Role::Node, "{role:?}");
        }
    }

    #[test]
    fn what_counts_more_than_a_reading_and_what_is_read_but_once() {
        let of = |is: &dyn Fn(&Endpoint) -> bool| -> Vec<_> {
            let rows = ENDPOINTS.iter().filter(|one| is(one));
            rows.map(|one| format!("{} {}", one.method, one.path))
                .collect()
        };
        assert_eq!(
            of(&|one| one.cost() == Cost::Listing),
            [
                "GET /v1/runs",
                "GET /v1/studies",
                "GET /v1/studies/{study_id}",
                "GET /v1/studies/{study_id}/export",
                "GET /v1/orders",
                "GET /v1/audit"
            ]
        );
        assert_eq!(
            of(&|one| one.acts_once() && one.cost() != Cost::Steering),
            ["POST /v1/runs/finish", "POST /v1/outcomes"]
        );
        // All other POSTs steer, except questions and requests that may be repeated.
        assert_eq!(
            of(&|one| one.method == Method::POST && !one.acts_once()),
            [
                "POST /v1/preview",
                "POST /v1/runs/start",
                "POST /v1/runs/directives",
                "POST /v1/runs/over"
            ]
        );
    }

    #[test]
    fn what_is_changed_is_changed_by_its_owner_an_admin_or_root_and_by_nobody_else() {
        for endpoint in ENDPOINTS.iter().filter(|one| one.method == Method::POST) {
            for (role, grant) in endpoint.grants {
                let may = match role {
                    Role::User => *grant == Grant::Own,
                    Role::Coordinator => *grant == Grant::Account,
                    Role::Admin | Role::Node => *grant == Grant::All,
                    Role::Collector => endpoint.path == "/v1/outcomes",
                    Role::BurstBuffer => {
                        ["/v1/runs/start", "/v1/runs/directives"].contains(&endpoint.path)
                    }
                    Role::Operator | Role::ReportReader => false,
                };
                assert!(may, "{role:?} at {}", endpoint.path);
            }
        }
    }

    #[test]
    fn a_request_is_of_one_endpoint_or_of_none() {
        let path = |method, path| Endpoint::of(&method, path).map(|found| found.path);
        for (asked, expected) in [
            ("/v1/runs", Some("/v1/runs")),
            ("/v1/runs/4711", Some("/v1/runs/{job_id}")),
            ("/v1/runs/4711/replay", Some("/v1/runs/{job_id}/replay")),
            ("/v1/runs/", None),
            ("/v1/runs/4711/", None),
            ("/v1/runs/4711/replay/x", None),
            ("/v1", None),
            ("//v1/runs", None),
        ] {
            assert_eq!(path(Method::GET, asked), expected, "{asked}");
        }
        assert_eq!(path(Method::HEAD, "/v1/runs"), Some("/v1/runs"));
        assert_eq!(path(Method::POST, "/v1/runs/start"), Some("/v1/runs/start"));
        assert_eq!(path(Method::DELETE, "/v1/runs"), None);
    }

    /// Returns the name that the page gives a role.
    fn called(role: Role) -> &'static str {
        match role {
            Role::User => "user",
            Role::ReportReader => "report",
            Role::Coordinator => "coordinator",
            Role::Operator => "operator",
            Role::Admin => "admin",
            Role::Node => "node",
            Role::Collector => "collector",
            Role::BurstBuffer => "burst buffer",
        }
    }

    /// The page's rows, written from the table: endpoints with the same grants share a row.
    fn page() -> String {
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        for endpoint in ENDPOINTS {
            let mut granted: Vec<String> = Vec::new();
            for role in Role::ALL {
                let mut grants = endpoint.grants.iter();
                let grant = match grants.find(|(granted, _)| *granted == role) {
                    None => continue,
                    Some((_, Grant::Own)) => "own",
                    Some((_, Grant::Account)) => "account",
                    Some((_, Grant::All)) => "all",
                };
                granted.push(format!("{} {grant}", called(role)));
            }
            let granted = granted.join(", ");
            let asked = format!("`{} {}`", endpoint.method, endpoint.path);
            match rows.iter_mut().find(|(same, _)| *same == granted) {
                Some((_, endpoints)) => endpoints.push(asked),
                None => rows.push((granted, vec![asked])),
            }
        }
        let mut text = String::new();
        for (granted, endpoints) in rows {
            text.push_str(&format!("| {} | {granted} |\n", endpoints.join(", ")));
        }
        text
    }

    #[test]
    fn the_docs_have_the_same_table() {
        let docs = include_str!("../../../docs/access.md");
        let rows = docs.lines().filter(|line| line.starts_with("| `"));
        let rows: String = rows.map(|line| format!("{line}\n")).collect();
        assert!(rows == page(), "docs/access.md should have\n{}", page());
    }

    #[test]
    fn every_signed_route_has_its_row_and_only_those() {
        let described = crate::api::description();
        let mut routes = BTreeSet::new();
        for (path, item) in described.paths.paths {
            if ["/v1/health", "/v1/ready", "/v1/openapi.json"].contains(&path.as_str()) {
                continue;
            }
            for (method, operation) in [(Method::GET, item.get), (Method::POST, item.post)] {
                if operation.is_some() {
                    routes.insert((method.to_string(), path.clone()));
                }
            }
        }
        let rows = ENDPOINTS.iter();
        let rows: BTreeSet<_> = rows
            .map(|one| (one.method.to_string(), one.path.to_owned()))
            .collect();
        assert_eq!(rows.len(), ENDPOINTS.len());
        assert_eq!(rows, routes);
    }
}
