//! The reasons why a database cannot be used, with what an admin can do.

use std::fmt;
use std::io::ErrorKind;

use rustls::CertificateError;

/// The reason why a server cannot be used at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Nothing listens at the address.
    Refused,
    /// There is no such socket.
    NoSocket,
    /// The host's name has no address.
    UnknownHost(String),
    /// The network does not lead there.
    Unreachable(String),
    /// The server does not answer in time.
    Silent,
    /// The server has no TLS, which the URL asks for.
    NoTls,
    /// The server's certificate does not prove its identity.
    Certificate(String),
    /// The server refuses the client's certificate, or asks for one.
    ClientCertificate(String),
    /// TLS fails in another way.
    Tls(String),
    /// A file of certificates or keys cannot be used.
    Files(String),
    /// The server has no connection left for this role, for this database or at all.
    TooManyConnections(String),
    /// The password is wrong, or there is none.
    Password(String),
    /// The role does not exist, or may not connect from here or to this database.
    Role(String),
    /// There is no such database.
    NoDatabase(String),
    /// The server is starting, recovering or shutting down.
    Restarting(String),
    /// The connection ended.
    Lost(String),
    /// The server lacks disk space, memory or other resources.
    Exhausted(String),
    /// The server answers but takes no writes.
    ReadOnly(ReadOnly),
    /// There is a pooler in between that the configuration does not name.
    Pooler(String),
    /// Any other problem, in its own words.
    Other(String),
}

/// The reason why a database takes no writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// The server is a standby.
    Standby,
    /// `default_transaction_read_only` is on.
    Setting,
    /// The server has refused a write, for an unknown reason.
    Unknown,
}

impl fmt::Display for ReadOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Standby => "takes no writes: it is a standby",
            Self::Setting => "takes no writes: default_transaction_read_only is on",
            Self::Unknown => "takes no writes",
        })
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => write!(f, "refuses the connection: no server listens there"),
            Self::NoSocket => write!(f, "is no socket: no server listens there"),
            Self::UnknownHost(why) => write!(f, "is an unknown host: {why}"),
            Self::Unreachable(why) => write!(f, "cannot be reached: {why}"),
            Self::Silent => write!(f, "does not answer in time"),
            Self::NoTls => write!(f, "has no TLS, which sslmode asks for"),
            Self::Certificate(why) => write!(f, "has a certificate that is not trusted: {why}"),
            Self::ClientCertificate(why) => write!(f, "refuses the client's certificate: {why}"),
            Self::Tls(why) => write!(f, "fails at TLS: {why}"),
            Self::Files(why) => write!(f, "cannot be connected to: {why}"),
            Self::TooManyConnections(why) => write!(f, "has no connection left: {why}"),
            Self::Password(why) => write!(f, "refuses the password: {why}"),
            Self::Role(why) => write!(f, "refuses the role: {why}"),
            Self::NoDatabase(why) => write!(f, "lacks the database: {why}"),
            Self::Restarting(why) => write!(f, "is starting or stopping: {why}"),
            Self::Lost(why) => write!(f, "has ended the connection: {why}"),
            Self::Exhausted(why) => write!(f, "lacks what it works with: {why}"),
            Self::ReadOnly(why) => why.fmt(f),
            Self::Pooler(why) => write!(f, "is behind a pooler: {why}"),
            Self::Other(why) => write!(f, "cannot be worked with: {why}"),
        }
    }
}

impl Outage {
    /// The remedy that an admin has, as a sentence.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Refused | Self::NoSocket => {
                "start PostgreSQL there, or correct host and port in [database] url of service.toml"
            }
            Self::UnknownHost(_) => {
                "correct the host in [database] url of service.toml, or this host's name service (`getent hosts NAME`)"
            }
            Self::Unreachable(_) | Self::Silent => {
                "see whether the host is up, and what the network and its firewalls let through"
            }
            Self::NoTls => {
                "set ssl = on in postgresql.conf, or a weaker sslmode in [database] url if the network is trusted"
            }
            Self::Certificate(_) => {
                "let sslrootcert in [database] url name the authority of the server's certificate, and host the name \
                 that is in it"
            }
            Self::ClientCertificate(_) => {
                "let sslcert and sslkey in [database] url name a valid certificate of an authority that ssl_ca_file \
                 of postgresql.conf has"
            }
            Self::Tls(_) => "see the server's log, and ssl_* in postgresql.conf",
            Self::Files(_) => {
                "let the service's account read the files that [database] url names: `io-autotuned --check` as that \
                 account says whether it can"
            }
            Self::TooManyConnections(_) => {
                "raise the limit (alter role ... connection limit, or max_connections), or lower [database] \
                 connections and user_connections: each replica has up to their sum and two more"
            }
            Self::Password(_) => {
                "correct the password in [database] url of service.toml, or in the file that PGPASSFILE names"
            }
            Self::Role(_) => {
                "run deploy/sql/roles.sql in the database, and let pg_hba.conf admit the role from this host"
            }
            Self::NoDatabase(_) => {
                "correct the database in [database] url of service.toml, or make it (docs/install.md, \"Database\")"
            }
            Self::Exhausted(_) => {
                "see whether the disk of the database is full, or its memory is used up"
            }
            Self::Restarting(_) | Self::Lost(_) => {
                "none, if it comes back; else see PostgreSQL's log"
            }
            Self::ReadOnly(ReadOnly::Standby) => {
                "promote it, or name all servers in [database] url, so that the service finds the one that takes \
                 writes: postgres://USER@HOST1,HOST2/DATABASE"
            }
            Self::ReadOnly(_) => {
                "`alter system reset default_transaction_read_only` and `select pg_reload_conf()`, or where it is set \
                 for the role or the database"
            }
            Self::Pooler(_) => {
                "set pooler = \"transaction\" in [database] of service.toml (docs/install.md, \"Database\")"
            }
            Self::Other(_) => {
                "see whether PostgreSQL runs and [database] url of service.toml is right; its log says more"
            }
        }
    }

    /// Returns true if a request that met this may succeed at once on another connection.
    pub(crate) fn may_be_of_one_connection(&self) -> bool {
        matches!(
            self,
            Self::Lost(_) | Self::ReadOnly(_) | Self::Restarting(_)
        )
    }

    /// The outage that an error shows; `None`: the error is about the statement.
    pub(crate) fn of(error: &sqlx::Error) -> Option<Self> {
        Some(match error {
            sqlx::Error::Io(error) => Self::of_io(error),
            sqlx::Error::Protocol(text) => Self::Lost(text.clone()),
            sqlx::Error::Tls(error) => match error.downcast_ref() {
                Some(error) => Self::of_tls(error),
                None if error.to_string().contains("does not support TLS") => Self::NoTls,
                None => Self::Tls(error.to_string()),
            },
            sqlx::Error::Database(error) => {
                return Self::of_code(error.code().as_deref().unwrap_or(""), error.message());
            }
            _ => return None,
        })
    }

    /// The outage because of which no connection could be made.
    pub(crate) fn of_connecting(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(error) => {
                let (code, text) = (error.code(), error.message().to_owned());
                match code.as_deref().unwrap_or("") {
                    // PgBouncer uses this code for everything that it refuses.
                    "08P01" if text.contains("unsupported startup parameter") => Self::Pooler(text),
                    "08P01" if text.contains("no such database") => Self::NoDatabase(text),
                    "08P01" if text.contains("no such user") => Self::Role(text),
                    "08P01" if text.contains("authentication failed") => Self::Password(text),
                    "28P01" => Self::Password(text),
                    "28000" if text.contains("certificate") => Self::ClientCertificate(text),
                    "28000" | "42501" => Self::Role(text),
                    "3D000" => Self::NoDatabase(text),
                    code => Self::of_code(code, &text).unwrap_or(Self::Other(text)),
                }
            }
            error => Self::of(error).unwrap_or_else(|| Self::Other(error.to_string())),
        }
    }

    fn of_code(code: &str, text: &str) -> Option<Self> {
        let text = text.to_owned();
        Some(match code {
            "53300" => Self::TooManyConnections(text),
            "25006" => Self::ReadOnly(ReadOnly::Unknown),
            code if code.starts_with("57P") => Self::Restarting(text),
            code if code.starts_with("08") => Self::Lost(text),
            // No disk space, no memory, or an error of the disk.
            code if code.starts_with("53") || code.starts_with("58") => Self::Exhausted(text),
            _ => return None,
        })
    }

    fn of_io(error: &std::io::Error) -> Self {
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
            return Self::of_tls(tls);
        }
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::NotFound => Self::NoSocket,
            ErrorKind::PermissionDenied
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::AddrNotAvailable
            | ErrorKind::NetworkDown => Self::Unreachable(error.to_string()),
            ErrorKind::TimedOut => Self::Silent,
            _ if error.to_string().starts_with("failed to lookup address") => {
                Self::UnknownHost(error.to_string())
            }
            _ => Self::Lost(error.to_string()),
        }
    }

    fn of_tls(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(why) => Self::Certificate(match why {
                CertificateError::UnknownIssuer => {
                    "sslrootcert does not have its authority".to_owned()
                }
                why => why.to_string(),
            }),
            rustls::Error::AlertReceived(_) => Self::ClientCertificate(error.to_string()),
            _ => Self::Tls(error.to_string()),
        }
    }
}

/// The servers of a database of which none can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    servers: Vec<(String, Outage)>,
}

impl Unavailable {
    /// The servers by their addresses, each with its problem.
    pub(crate) fn of(servers: Vec<(String, Outage)>) -> Self {
        Self { servers }
    }

    /// The outage that a statement has met, without the server's name.
    #[must_use]
    pub fn met(outage: Outage) -> Self {
        Self::of(vec![("the database".to_owned(), outage)])
    }

    /// Wraps it in sqlx's error, which is all that a statement may return.
    pub(super) fn carried(self) -> sqlx::Error {
        sqlx::Error::AnyDriverError(Box::new(self))
    }

    /// The problem of each server.
    pub fn outages(&self) -> impl Iterator<Item = &Outage> {
        self.servers.iter().map(|(_, outage)| outage)
    }

    /// The remedy that an admin has, as a sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        let mut remedies: Vec<&str> = self.outages().map(Outage::remedy).collect();
        remedies.dedup();
        remedies.join("; ")
    }

    /// Returns true if the database answers, but takes no writes.
    #[must_use]
    pub fn can_be_read(&self) -> bool {
        self.outages()
            .any(|outage| matches!(outage, Outage::ReadOnly(_)))
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (server, outage)) in self.servers.iter().enumerate() {
            if place > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{server} {outage}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unavailable {}
