//! The two doors, and who may come in by which before their first byte.

use std::net::IpAddr;

use crate::peers::{Most, Peer};

/// Who a listener is for.
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

    /// `of_a_host` is for users' hosts. At nodes' door only root holds connections, and thousands of
    /// nodes may be one host, by address translation or as one IPv6 network: unless `any_port` may
    /// come in, theirs are not counted.
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

    /// Connections too many that are closed without a pause. They wait in one queue with those that
    /// are admitted, and those whose client has gone wait too: a full one is emptied in a second, at
    /// nodes' door, where a prolog has 2 s, in half of one.
    pub(crate) fn closed_at_once(self) -> u32 {
        match self {
            Self::Nodes => 64,
            Self::Users => 16,
        }
    }

    /// Whether a connection may come in at all, before its first byte.
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
    /// `None`: this host.
    pub(crate) address: Option<IpAddr>,
    /// From root, or from a port that only root of a host can bind.
    pub(crate) is_privileged: bool,
}

/// Connections of one host at nodes' door where users of that host can open them too.
const NODES_OF_A_HOST: usize = 4096;

/// The first port that users can bind.
pub(crate) const UNPRIVILEGED: u16 = 1024;
