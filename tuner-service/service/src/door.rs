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

    pub(crate) fn most(self, of_a_host: usize) -> Most {
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

/// The first port that users can bind.
pub(crate) const UNPRIVILEGED: u16 = 1024;
