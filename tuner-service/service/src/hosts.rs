//! The reports of nodes about themselves, each as of its last start of a run, for `doctor`. They
//! are in this replica's memory and decide nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use io_autotune_model::text::listed;
use io_autotune_protocol::{Check, NodeState, PluginOnNodes};
use jiff::Timestamp;

/// The most nodes that are remembered; further ones are dropped.
const MOST: usize = 20_000;

/// The most bytes of a node's report; a longer one is dropped.
const LONGEST: usize = 4096;

/// Seconds after which a report says nothing about the present.
const LASTING_SECONDS: i64 = 24 * 3600;

/// The most nodes of a kind that are named.
const NAMED: usize = 5;

/// Seconds by which clocks may differ: credentials are valid for minutes and reports are ordered by
/// time, so this is more than a request takes on its way.
const CLOCK_SKEW_SECONDS: i64 = 5;

/// A timer delivers once a minute; an older report is stuck.
const STUCK_SECONDS: u64 = 5 * 60;

#[derive(Debug, Default)]
pub(crate) struct Hosts(Mutex<HashMap<String, Host>>);

#[derive(Clone, Debug)]
struct Host {
    heard_at: Timestamp,
    state: NodeState,
}

impl Host {
    /// Seconds by which the node's clock is ahead.
    fn ahead(&self) -> i64 {
        self.state.told_at.duration_since(self.heard_at).as_secs()
    }
}

impl Hosts {
    pub(crate) fn hear(&self, node: &str, state: NodeState, now: Timestamp) {
        let arguments = state.plugin.iter().flatten().map(String::len);
        let problem = state.spool_problem.as_ref().map_or(0, String::len);
        if arguments.sum::<usize>() + problem + state.version.len() > LONGEST {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST || known.contains_key(node) {
            let heard_at = now;
            known.insert(node.to_owned(), Host { heard_at, state });
        }
    }

    fn recent(&self, now: Timestamp) -> BTreeMap<String, Host> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent =
            |host: &Host| now.duration_since(host.heard_at).as_secs() <= LASTING_SECONDS;
        let recent = known.iter().filter(|(_, host)| is_recent(host));
        recent
            .map(|(node, host)| (node.clone(), host.clone()))
            .collect()
    }

    /// The nodes of each set of the plugin's arguments, most nodes first.
    pub(crate) fn plugins(&self, now: Timestamp) -> Vec<PluginOnNodes> {
        let mut found: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        for (node, host) in self.recent(now) {
            if let Some(arguments) = host.state.plugin {
                found.entry(arguments).or_default().push(node);
            }
        }
        let mut plugins: Vec<_> = found
            .into_iter()
            .map(|(arguments, nodes)| PluginOnNodes { arguments, nodes })
            .collect();
        plugins.sort_by_key(|plugin| usize::MAX - plugin.nodes.len());
        plugins
    }

    pub(crate) fn checks(&self, now: Timestamp) -> Vec<Check> {
        let known = self.recent(now);
        if known.is_empty() {
            let detail =
                "none has started a run here in the last day: `io-autotune doctor --job` lets one";
            return vec![Check::ok("nodes", detail)];
        }
        vec![
            versions(&known),
            clocks(&known),
            spools(&known),
            self.arguments(now),
        ]
    }

    fn arguments(&self, now: Timestamp) -> Check {
        const NAME: &str = "plugin on nodes";
        match &*self.plugins(now) {
            [] => Check::ok(
                NAME,
                "no node has found the plugin's line in plugstack.conf",
            ),
            [one] => Check::ok(
                NAME,
                format!("the same arguments on {}", nodes(one.nodes.len())),
            ),
            [most, others @ ..] => {
                let others = others.iter().flat_map(|plugin| plugin.nodes.iter());
                let others: Vec<&String> = others.collect();
                Check::failed(
                    NAME,
                    format!(
                        "other arguments than on {}: {}",
                        nodes(most.nodes.len()),
                        listed(&others, NAMED)
                    ),
                    format!(
                        "write the same line in plugstack.conf on all hosts; most nodes have: {}",
                        most.arguments.join(" ")
                    ),
                )
            }
        }
    }
}

fn versions(known: &BTreeMap<String, Host>) -> Check {
    const NAME: &str = "nodes";
    let here = env!("CARGO_PKG_VERSION");
    let others = known.iter().filter(|(_, host)| host.state.version != here);
    let others: Vec<&str> = others.map(|(node, _)| node.as_str()).collect();
    if others.is_empty() {
        return Check::ok(
            NAME,
            format!("{} in the last day, all {here}", nodes(known.len())),
        );
    }
    Check::warning(
        NAME,
        format!("another version than {here}: {}", listed(&others, NAMED)),
        "upgrade io-autotune-node and the plugin there",
    )
}

fn clocks(known: &BTreeMap<String, Host>) -> Check {
    const NAME: &str = "nodes' clocks";
    let is_off = |host: &Host| host.ahead().abs() > CLOCK_SKEW_SECONDS;
    let off: Vec<String> = known
        .iter()
        .filter(|(_, host)| is_off(host))
        .map(|(node, host)| format!("{node} ({:+} s)", host.ahead()))
        .collect();
    if off.is_empty() {
        return Check::ok(NAME, "as the service's");
    }
    Check::failed(
        NAME,
        format!("off the service's: {}", listed(&off, NAMED)),
        "let chrony or ntpd set the clock on these nodes and on the service's host: `chronyc tracking`",
    )
}

fn spools(known: &BTreeMap<String, Host>) -> Check {
    const NAME: &str = "nodes' spools";
    let broken = known.iter().filter_map(|(node, host)| {
        let problem = host.state.spool_problem.as_ref()?;
        Some(format!("{node}: {problem}"))
    });
    let broken: Vec<String> = broken.collect();
    if !broken.is_empty() {
        return Check::failed(
            NAME,
            format!("cannot be used: {}", listed(&broken, NAMED)),
            "make the directory (plugstack.conf, spool_dir) root's, mode 0700, on a disk with room: \
             until then a report that the service does not take at once may be lost",
        );
    }
    let of = |host: &Host| host.state.refused > 0 || host.state.oldest_seconds > STUCK_SECONDS;
    let stuck = known
        .iter()
        .filter(|(_, host)| of(host))
        .map(|(node, host)| {
            let NodeState {
                waiting,
                oldest_seconds,
                refused,
                ..
            } = &host.state;
            format!("{node}: {waiting} wait, the oldest for {oldest_seconds} s, {refused} refused")
        });
    let stuck: Vec<String> = stuck.collect();
    if stuck.is_empty() {
        let waiting: u32 = known.values().map(|host| host.state.waiting).sum();
        return Check::ok(NAME, format!("{waiting} reports waited when last heard of"));
    }
    Check::warning(
        NAME,
        format!("reports are stuck: {}", listed(&stuck, NAMED)),
        "there, `systemctl enable --now io-autotune-flush.timer`; `io-autotune-node flush` says what is in the way, \
         and the service's log why it refuses",
    )
}

fn nodes(count: usize) -> String {
    match count {
        1 => "1 node".to_owned(),
        more => format!("{more} nodes"),
    }
}

#[cfg(test)]
mod tests {
    use io_autotune_protocol::CheckState;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn state(told: i64) -> NodeState {
        NodeState {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            told_at: at(told),
            plugin: Some(vec!["default=off".into()]),
            waiting: 2,
            oldest_seconds: 60,
            refused: 0,
            spool_problem: None,
        }
    }

    fn found(hosts: &Hosts, name: &str) -> Check {
        let checks = hosts.checks(at(1000));
        checks.into_iter().find(|check| check.name == name).unwrap()
    }

    #[test]
    fn nodes_that_are_well_are_well() {
        let hosts = Hosts::default();
        assert!(found(&hosts, "nodes").detail.contains("doctor --job"));
        for node in ["n1", "n2"] {
            hosts.hear(node, state(998), at(1000));
        }
        let states = hosts.checks(at(1000)).into_iter().map(|check| check.state);
        assert_eq!(states.collect::<Vec<_>>(), [CheckState::Ok; 4]);
        assert_eq!(hosts.plugins(at(1000))[0].nodes, ["n1", "n2"]);
        // An old report says nothing.
        assert!(hosts.plugins(at(1001 + LASTING_SECONDS)).is_empty());
    }

    #[test]
    fn a_node_that_differs_is_named_with_what_to_do() {
        let hosts = Hosts::default();
        for node in ["n1", "n2", "n3"] {
            hosts.hear(node, state(1000), at(1000));
        }
        hosts.hear(
            "n3",
            NodeState {
                version: "0.1.0".into(),
                ..state(1000)
            },
            at(1000),
        );
        let check = found(&hosts, "nodes");
        assert!(check.detail.ends_with(": n3"), "{check:?}");
        hosts.hear("n3", state(1030), at(1000));
        let check = found(&hosts, "nodes' clocks");
        assert!(check.detail.contains("n3 (+30 s)"), "{check:?}");
        assert!(check.fix.unwrap().contains("chronyc"));
        let argued = NodeState {
            plugin: Some(vec!["default=on".into()]),
            ..state(1000)
        };
        hosts.hear("n3", argued, at(1000));
        let check = found(&hosts, "plugin on nodes");
        assert!(check.detail.ends_with("on 2 nodes: n3"), "{check:?}");
        assert!(check.fix.unwrap().ends_with("default=off"));
        let stuck = NodeState {
            oldest_seconds: 3600,
            ..state(1000)
        };
        hosts.hear("n3", stuck, at(1000));
        let check = found(&hosts, "nodes' spools");
        assert_eq!(check.state, CheckState::Warning);
        assert!(
            check.detail.contains("n3: 2 wait, the oldest for 3600 s"),
            "{check:?}"
        );
        let broken = NodeState {
            spool_problem: Some("no directory".into()),
            ..state(1000)
        };
        hosts.hear("n3", broken, at(1000));
        let check = found(&hosts, "nodes' spools");
        assert_eq!(check.state, CheckState::Failed);
        assert!(check.fix.unwrap().contains("mode 0700"));
    }

    #[test]
    fn memory_is_bounded_whatever_nodes_say() {
        let hosts = Hosts::default();
        let long = NodeState {
            version: "x".repeat(LONGEST + 1),
            ..state(1000)
        };
        hosts.hear("n1", long, at(1000));
        assert!(hosts.recent(at(1000)).is_empty());
        for node in 0..=MOST {
            hosts.hear(&node.to_string(), state(1000), at(1000));
        }
        assert_eq!(hosts.recent(at(1000)).len(), MOST);
    }
}
