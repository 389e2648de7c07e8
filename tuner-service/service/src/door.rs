//! The two doors, and the connections that each admits before their first byte.

use std::net::IpAddr;

use crate::peers::{Most, Peer};

/// One of the service's two doors, by its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Root of the cluster's nodes.
    Nodes,
    /// Everybody.
    Users,
}

impl Door {
    /// The name of its sockets that systemd passes (`FileDescriptorName=`).
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Users => "users",
        }
    }

    /// The most connections at this door. `of_a_host` applies to users' hosts. At the nodes' door
    /// only root holds connections, and thousands of nodes may appear as one host, by address
    /// translation or as one IPv6 network: unless `any_port` may connect, theirs are not counted.
    pub(crate) fn most(self, of_a_host: usize, any_port: bool) -> Most {
        let of_a_host = match self {
            Self::Nodes if any_port => of_a_host.max(NODES_OF_A_HOST),
            Self::Nodes => usize::MAX,
            Self::Users => of_a_host,
        };
        let of_a_user = match self {
            Self::Nodes => 0,
            Self::Users => 64,
        };
        Most {
            of_a_user,
            of_a_host,
            in_all: match self {
                Self::Nodes => usize::MAX,
                Self::Users => 4096.max(of_a_host),
            },
        }
    }

    /// The number of excess connections that are closed without a pause. They wait in one queue
    /// with those that are admitted, as do those whose client has gone: a full queue is emptied in
    /// a second, and at the nodes' door, where a prolog has 2 s, in half a second.
    pub(crate) fn closed_at_once(self) -> u32 {
        match self {
            Self::Nodes => 64,
            Self::Users => 16,
        }
    }

    /// Returns true if a connection is admitted, before its first byte.
    pub(crate) fn admits(self, came: &Came, any_port: bool) -> bool {
        match (self, came.peer) {
            (Self::Users, _) => true,
            (Self::Nodes, Peer::User(_)) => came.is_privileged,
            (Self::Nodes, Peer::Host(_)) => came.is_privileged || any_port,
        }
    }
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Came {
    pub(crate) peer: Peer,
    /// The address of the client; `None` if it is on this host.
    pub(crate) address: Option<IpAddr>,
    /// From root, or from a port that only root of a host can bind.
    pub(crate) is_privileged: bool,
}

/// Connections of one host at nodes' door where users of that host can open them too.
const NODES_OF_A_HOST: usize = 4096;

/// The first port that users can bind.
pub(crate) const UNPRIVILEGED: u16 = 1024;
