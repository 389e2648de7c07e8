//! Limits on the number of open connections. Any user of a host can open them and send nothing.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// The client of a connection, as the kernel knows it before the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// A process of this host.
    User(u32),
    /// A host, with every user of it. An IPv6 network of 64 bits is one host, as a host can take as
    /// many addresses of it as it likes; so are all loopback addresses.
    Host(IpAddr),
}

impl Peer {
    pub(crate) fn at(address: SocketAddr) -> Self {
        const NETWORK: u128 = !0 << 64;
        Self::Host(match address.ip().to_canonical() {
            IpAddr::V6(ip) if !ip.is_loopback() => {
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & NETWORK))
            }
            IpAddr::V4(ip) if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        })
    }
}

/// The most connections at once. Our clients open one per request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// The most connections of one user, except root: a job on ten thousand nodes has as many
    /// prologs.
    pub(crate) of_a_user: usize,
    /// The most connections of one host.
    pub(crate) of_a_host: usize,
    /// The most connections in all, without local root's: both doors share the process's file
    /// descriptors.
    pub(crate) in_all: usize,
}

#[derive(Debug)]
pub(crate) struct Peers {
    most: Most,
    open: Mutex<HashMap<Peer, usize>>,
}

impl Peers {
    pub(crate) fn new(most: Most) -> Arc<Self> {
        Arc::new(Self {
            most,
            open: Mutex::default(),
        })
    }

    /// A place for a connection, until it is dropped; `None`: the peer holds too many.
    pub(crate) fn place(self: &Arc<Self>, peer: Peer) -> Option<Place> {
        let most = match peer {
            Peer::User(0) => usize::MAX,
            Peer::User(_) => self.most.of_a_user,
            Peer::Host(_) => self.most.of_a_host,
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if peer != Peer::User(0) && open.values().sum::<usize>() >= self.most.in_all {
            return None;
        }
        let count = open.entry(peer).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place {
            peer,
            peers: Arc::clone(self),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Place {
    peer: Peer,
    peers: Arc<Peers>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let open = &self.peers.open;
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(address: &str) -> Peer {
        Peer::at(address.parse().unwrap())
    }

    /// Attack (floods): Connections say nothing, never end a request, or are too many of one user
    /// or host.
    /// Outcome: Each is closed in time, and each may have so many; local root has no limit.
    ///
    /// Attack (second-round): A hundred users together open connections until none is left for
    /// prologs.
    /// Outcome: All together are bounded, and local root is not.
    #[test]
    fn no_user_and_no_host_holds_all_connections_and_root_may() {
        let peers = Peers::new(Most {
            of_a_user: 2,
            of_a_host: 3,
            in_all: 9,
        });
        let held: Vec<_> = (0..9)
            .map(|_| peers.place(Peer::User(1000)))
            .map_while(|place| place)
            .collect();
        assert_eq!(held.len(), 2);
        let of_a_host = (0..9).map(|port| peers.place(host(&format!("10.0.0.1:{port}"))));
        let of_a_host: Vec<_> = of_a_host.flatten().collect();
        assert_eq!(of_a_host.len(), 3);
        for other in [
            Peer::User(1001),
            host("10.0.0.2:7"),
            host("[2001:db8::1]:7"),
        ] {
            assert!(peers.place(other).is_some(), "{other:?}");
        }
        let others: Vec<_> = (1..99)
            .map(|uid| peers.place(Peer::User(uid + 2000)))
            .collect();
        assert_eq!(others.iter().flatten().count(), 4, "nine in all");
        let roots: Vec<_> = (0..99).map(|_| peers.place(Peer::User(0))).collect();
        assert!(roots.iter().all(Option::is_some));
        drop((held, others, roots, of_a_host));
        assert!(peers.open.lock().unwrap().is_empty());
        assert!(peers.place(Peer::User(1000)).is_some());
    }

    /// Attack (second-round): A host opens connections from each address that it has.
    /// Outcome: It counts as one host.
    #[test]
    fn a_host_is_one_peer_whichever_of_its_addresses_it_uses() {
        assert_eq!(host("[2001:db8::1]:1"), host("[2001:db8::ffff:2]:2"));
        assert_ne!(host("[2001:db8::1]:1"), host("[2001:db8:0:1::1]:1"));
        assert_eq!(host("[::ffff:10.0.0.1]:1"), host("10.0.0.1:2"));
        assert_eq!(host("127.0.0.1:1"), host("127.9.8.7:2"));
        assert_eq!(host("[::1]:1"), Peer::Host("::1".parse().unwrap()));
    }
}
