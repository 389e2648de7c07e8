//! The URL of the database: the servers, the role, and the protection of the connection.
//!
//! sqlx reads one server from a URL, ignores what it does not know, and notices unreadable
//! certificates only when it connects. So the URL is read here, as libpq reads it, and a URL that
//! cannot work is refused when the configuration is read.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize, Serializer};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The text shown instead of a password.
const HIDDEN: &str = "***";

/// Parameters of libpq that have no effect here, because the service has its own time-outs and its
/// own name. They are accepted so that the report can use the same URL.
const OF_LIBPQ: [&str; 10] = [
    "application_name",
    "connect_timeout",
    "fallback_application_name",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "tcp_user_timeout",
    "gssencmode",
    "load_balance_hosts",
];

const KNOWN: &str = "host, port, dbname, user, password, sslmode, sslrootcert, sslcert, sslkey, \
                     target_session_attrs and options";

/// The reason why a text cannot be the database's URL.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// The text is empty.
    #[error("the URL is empty: write postgres://USER@HOST:PORT/DATABASE")]
    Empty,
    /// The text does not begin as a URL does.
    #[error(
        "this is no URL: write postgres://USER@HOST:PORT/DATABASE?PARAMETER=VALUE, not a list of key=value"
    )]
    NoUrl,
    /// The URL is that of another kind of database.
    #[error("{0}:// is not PostgreSQL: the URL begins with postgres:// or postgresql://")]
    Scheme(String),
    /// A `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error(
        "{0} is not well encoded: of the signs that have a meaning in URLs, % is written %25, / %2F, ? %3F, @ %40"
    )]
    Encoding(&'static str),
    /// A text that cannot be a host.
    #[error(
        "{0:?} is no host: write a name, an address, [an IPv6 address] or the directory of a socket, encoded"
    )]
    Host(String),
    /// A text that cannot be a port.
    // The text may be the end of a password, so it is not shown.
    #[error("what follows a colon after a host is no port: a port is a number from 1 to 65535")]
    Port,
    /// `port` has neither one value nor one for each host.
    #[error("there are {ports} ports for {hosts} hosts: give one for all, or one for each")]
    Ports {
        /// The hosts.
        hosts: usize,
        /// The ports.
        ports: usize,
    },
    /// An unknown parameter.
    #[error("parameter {0:?} is unknown: the service knows {KNOWN}")]
    Unknown(String),
    /// A parameter without `=`.
    #[error("parameter {0:?} has no value: write {0}=VALUE")]
    NoValue(String),
    /// A parameter with a value that it cannot have.
    #[error("{parameter}={value} cannot be: {expected}")]
    Value {
        /// The parameter.
        parameter: &'static str,
        /// The value.
        value: String,
        /// The values that it can have.
        expected: &'static str,
    },
    /// A mode that verifies certificates, without authorities to verify by.
    #[error(
        "sslmode={0} needs sslrootcert: the file of the authority's certificates, or `system` for those that this \
         host trusts"
    )]
    NoRoot(&'static str),
    /// A client certificate without its key, or the reverse.
    #[error("sslcert and sslkey are given together or not at all")]
    HalfCertificate,
    /// A file of certificates or keys cannot be read.
    #[error("{parameter}={}: {source}", path.display())]
    Unreadable {
        /// The parameter.
        parameter: &'static str,
        /// The parameter's file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file of certificates or keys has another content.
    #[error("{parameter}={}: {problem}", path.display())]
    Unusable {
        /// The parameter.
        parameter: &'static str,
        /// The parameter's file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

/// One of the servers that a URL names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    /// The host; `None`: the one in libpq's environment, or this host's default.
    host: Option<String>,
    port: Option<u16>,
}

/// The authorities that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Root {
    /// The authorities of the operating system.
    System,
    /// The authorities in a file.
    File(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Client {
    certificate: PathBuf,
    key: PathBuf,
}

/// The URL of a database, which has been checked.
///
/// It is displayed without its password.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DatabaseUrl {
    shown: String,
    servers: Vec<Server>,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
    encryption: Option<PgMode>,
    root: Option<Root>,
    client: Option<Client>,
    options: Vec<(Option<String>, String)>,
    statements: Option<usize>,
}

/// sqlx's TLS mode, in a form that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PgMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl PgMode {
    fn of(value: &str) -> Result<Self, UrlError> {
        match value {
            "disable" => Ok(Self::Disable),
            // Every server that `allow` accepts, `prefer` accepts too.
            "allow" | "prefer" => Ok(Self::Prefer),
            "require" => Ok(Self::Require),
            "verify-ca" => Ok(Self::VerifyCa),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err(UrlError::Value {
                parameter: "sslmode",
                value: value.to_owned(),
                expected: "it is disable, allow, prefer, require, verify-ca or verify-full",
            }),
        }
    }

    fn sqlx(self) -> PgSslMode {
        match self {
            Self::Disable => PgSslMode::Disable,
            Self::Prefer => PgSslMode::Prefer,
            Self::Require => PgSslMode::Require,
            Self::VerifyCa => PgSslMode::VerifyCa,
            Self::VerifyFull => PgSslMode::VerifyFull,
        }
    }

    /// The name of a mode that verifies certificates; `None` for others.
    fn verifies(self) -> Option<&'static str> {
        match self {
            Self::VerifyCa => Some("verify-ca"),
            Self::VerifyFull => Some("verify-full"),
            _ => None,
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({})", self.shown)
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown)
    }
}

impl TryFrom<String> for DatabaseUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        text.parse()
    }
}

impl FromStr for DatabaseUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(UrlError::Empty);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::NoUrl)?;
        match scheme {
            "postgres" | "postgresql" => {}
            _ if is_scheme(scheme) => return Err(UrlError::Scheme(scheme.to_owned())),
            _ => return Err(UrlError::NoUrl),
        }
        let (before, query) = match rest.split_once('?') {
            Some((before, query)) => (before, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match before.split_once('/') {
            Some((authority, path)) => (authority, Some(path)),
            None => (before, None),
        };
        // The text after an `@` would be shown, but it may be the rest of a password.
        if rest[authority.len()..].contains('@') {
            return Err(UrlError::Encoding(
                "a / or ? in the password, or an @ in a parameter,",
            ));
        }
        let mut url = Self {
            shown: format!("{scheme}://"),
            servers: Vec::new(),
            user: None,
            password: None,
            database: None,
            encryption: None,
            root: None,
            client: None,
            options: Vec::new(),
            statements: None,
        };
        url.read_authority(authority)?;
        if let Some(path) = path {
            url.shown.push('/');
            url.shown.push_str(path);
            url.database =
                Some(decoded(path, "the database's name")?).filter(|name| !name.is_empty());
        }
        if let Some(query) = query {
            url.read_query(query)?;
        }
        if url.servers.is_empty() {
            let (host, port) = (None, None);
            url.servers.push(Server { host, port });
        }
        url.is_protected_as_said()?;
        Ok(url)
    }
}

impl DatabaseUrl {
    fn read_authority(&mut self, authority: &str) -> Result<(), UrlError> {
        let hosts = match authority.rsplit_once('@') {
            None => authority,
            Some((who, hosts)) => {
                let (user, password) = match who.split_once(':') {
                    Some((user, password)) => (user, Some(password)),
                    None => (who, None),
                };
                self.user = Some(decoded(user, "the user")?).filter(|user| !user.is_empty());
                self.password = password
                    .map(|password| decoded(password, "the password"))
                    .transpose()?;
                self.shown.push_str(user);
                if password.is_some() {
                    self.shown.push(':');
                    self.shown.push_str(HIDDEN);
                }
                self.shown.push('@');
                hosts
            }
        };
        self.shown.push_str(hosts);
        if hosts.is_empty() {
            return Ok(());
        }
        for server in hosts.split(',') {
            self.servers.push(Server::of(server)?);
        }
        Ok(())
    }

    fn read_query(&mut self, query: &str) -> Result<(), UrlError> {
        let (mut hosts, mut ports): (Option<String>, Option<String>) = (None, None);
        let (mut certificate, mut key) = (None, None);
        self.shown.push('?');
        for (place, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
            if place > 0 {
                self.shown.push('&');
            }
            let (name, raw) = match pair.split_once('=') {
                Some((name, raw)) => (decoded(name, "a parameter")?, raw),
                None => return Err(UrlError::NoValue(decoded(pair, "a parameter")?)),
            };
            let value = decoded(raw, "a parameter's value")?;
            match name.as_str() {
                "password" => self.shown.push_str("password=***"),
                _ => self.shown.push_str(pair),
            }
            match name.as_str() {
                "host" => hosts = Some(value),
                "port" => ports = Some(value),
                "dbname" => self.database = Some(value),
                "user" => self.user = Some(value),
                "password" => self.password = Some(value),
                "sslmode" => self.encryption = Some(PgMode::of(&value)?),
                "sslrootcert" if value == "system" => self.root = Some(Root::System),
                "sslrootcert" => self.root = Some(Root::File(file("sslrootcert", &value)?)),
                "sslcert" => certificate = Some(file("sslcert", &value)?),
                "sslkey" => key = Some(file("sslkey", &value)?),
                "target_session_attrs" => session(&value)?,
                "options" => self.options.push((None, value)),
                "statement-cache-capacity" => {
                    self.statements = Some(value.parse().map_err(|_| UrlError::Value {
                        parameter: "statement-cache-capacity",
                        value,
                        expected: "it is a number of statements",
                    })?);
                }
                name if OF_LIBPQ.contains(&name) => {}
                name => match name
                    .strip_prefix("options[")
                    .and_then(|it| it.strip_suffix(']'))
                {
                    Some(option) => self.options.push((Some(option.to_owned()), value)),
                    None => return Err(UrlError::Unknown(name.to_owned())),
                },
            }
        }
        self.client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Client { certificate, key }),
            (None, None) => None,
            _ => return Err(UrlError::HalfCertificate),
        };
        if let Some(hosts) = hosts {
            self.servers = hosts
                .split(',')
                .map(Server::named)
                .collect::<Result<_, _>>()?;
        }
        match ports {
            Some(ports) => self.have_ports(&ports),
            None => Ok(()),
        }
    }

    fn have_ports(&mut self, ports: &str) -> Result<(), UrlError> {
        let ports: Vec<u16> = ports.split(',').map(port).collect::<Result<_, _>>()?;
        if self.servers.is_empty() {
            self.servers.push(Server {
                host: None,
                port: None,
            });
        }
        let hosts = self.servers.len();
        if ports.len() != 1 && ports.len() != hosts {
            let ports = ports.len();
            return Err(UrlError::Ports { hosts, ports });
        }
        for (place, server) in self.servers.iter_mut().enumerate() {
            server.port = Some(ports[if ports.len() == 1 { 0 } else { place }]);
        }
        Ok(())
    }

    fn is_protected_as_said(&self) -> Result<(), UrlError> {
        match (self.encryption.and_then(PgMode::verifies), &self.root) {
            (Some(mode), None) => Err(UrlError::NoRoot(mode)),
            // libpq would verify the server; this service would trust any server that answers.
            (None, Some(Root::File(path))) => Err(UrlError::Value {
                parameter: "sslrootcert",
                value: path.display().to_string(),
                expected: "nothing is verified by it without sslmode=verify-full or verify-ca",
            }),
            // libpq refuses this too: anybody can get a certificate from one of these authorities
            // for some name.
            (mode, Some(Root::System)) if mode != Some("verify-full") => Err(UrlError::Value {
                parameter: "sslrootcert",
                value: "system".to_owned(),
                expected: "the authorities that this host trusts certify anybody's host: it needs sslmode=verify-full",
            }),
            _ => Ok(()),
        }
    }

    /// Returns an error if the server's host name is not verified and this file is not the only
    /// source of trust: the authorities that this host trusts certify anybody for some name.
    fn is_trusted_alone(
        &self,
        path: &Path,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<(), UrlError> {
        let is_alone = variable("SSL_CERT_FILE").is_some_and(|file| Path::new(&file) == path)
            && variable("SSL_CERT_DIR").is_none();
        if self.encryption.and_then(PgMode::verifies) == Some("verify-ca") && !is_alone {
            let problem = "with verify-ca the authorities that this host trusts would be believed as well, whatever \
                           host they certify: use sslmode=verify-full, or set SSL_CERT_FILE to this file in the unit";
            return Err(unusable("sslrootcert", path, problem));
        }
        Ok(())
    }

    /// Checks that the files of certificates and keys can be read and have the right content. A
    /// running service reads them at every connection, so that they can be renewed.
    pub fn check_files(&self) -> Result<(), UrlError> {
        let mut roots = RootCertStore::empty();
        if let Some(Root::File(path)) = &self.root {
            const PARAMETER: &str = "sslrootcert";
            for certificate in certificates(PARAMETER, path)? {
                roots
                    .add(certificate)
                    .map_err(|error| unusable(PARAMETER, path, error))?;
            }
            self.is_trusted_alone(path, |name| std::env::var_os(name))?;
        }
        let Some(client) = &self.client else {
            return Ok(());
        };
        let chain = certificates("sslcert", &client.certificate)?;
        let pem = read("sslkey", &client.key)?;
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
            let problem = "there is no private key in it that is in PEM and without a passphrase";
            unusable("sslkey", &client.key, problem)
        })?;
        let provider = rustls::crypto::ring::default_provider();
        ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_root_certificates(roots)
                    .with_client_auth_cert(chain, key)
            })
            .map_err(|error| {
                let problem = format!(
                    "it does not belong to {}: {error}",
                    client.certificate.display()
                );
                unusable("sslkey", &client.key, problem)
            })?;
        Ok(())
    }

    /// Returns true if the URL sets options for sessions.
    #[must_use]
    pub fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// The options with which to connect to each server, in order.
    pub(crate) fn servers(&self) -> Vec<PgConnectOptions> {
        self.servers
            .iter()
            .map(|server| self.options_of(server))
            .collect()
    }

    fn options_of(&self, server: &Server) -> PgConnectOptions {
        let mut pairs = Vec::new();
        let port = server.port.map(|port| port.to_string());
        for (name, value) in [
            ("host", server.host.as_deref()),
            ("port", port.as_deref()),
            ("user", self.user.as_deref()),
            ("password", self.password.as_deref()),
            ("dbname", self.database.as_deref()),
        ] {
            pairs.extend(value.map(|value| format!("{name}={}", encoded(value))));
        }
        for (name, value) in &self.options {
            let value = encoded(value);
            pairs.push(match name {
                Some(name) => format!("options[{}]={value}", encoded(name)),
                None => format!("options={value}"),
            });
        }
        // A URL is used because only then does sqlx look for a password in libpq's file.
        let url = format!("postgres:///?{}", pairs.join("&"));
        let mut options = PgConnectOptions::from_str(&url)
            .unwrap_or_else(|_| PgConnectOptions::new())
            // Doubles are sent exactly in any case.
            .extra_float_digits(None);
        if let Some(mode) = self.encryption {
            options = options.ssl_mode(mode.sqlx());
        }
        if options.get_socket().is_some() || options.get_host().starts_with('/') {
            // As in libpq: nobody can listen in on a socket.
            options = options.ssl_mode(PgSslMode::Disable);
        }
        if let Some(Root::File(path)) = &self.root {
            options = options.ssl_root_cert(path);
        }
        if let Some(Client { certificate, key }) = &self.client {
            options = options.ssl_client_cert(certificate).ssl_client_key(key);
        }
        if let Some(capacity) = self.statements {
            options = options.statement_cache_capacity(capacity);
        }
        options
    }
}

impl Server {
    /// A server from the authority part of a URL.
    fn of(text: &str) -> Result<Self, UrlError> {
        let unlike = || UrlError::Host(text.to_owned());
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or_else(unlike)?;
            let address: std::net::Ipv6Addr = host.parse().map_err(|_| unlike())?;
            let port = match rest {
                "" => None,
                rest => Some(port(rest.strip_prefix(':').ok_or_else(unlike)?)?),
            };
            let host = Some(address.to_string());
            return Ok(Self { host, port });
        }
        let (host, number) = match text.split_once(':') {
            Some((host, number)) => (host, Some(port(number)?)),
            None => (text, None),
        };
        let server = Self::named(&decoded(host, "a host")?)?;
        Ok(Self {
            port: number,
            ..server
        })
    }

    /// A server from the parameter `host`.
    fn named(host: &str) -> Result<Self, UrlError> {
        let is_name = |host: &str| {
            host.chars()
                .all(|each| each.is_alphanumeric() || "-._".contains(each))
        };
        let can_be = host.starts_with('/') && !host.contains('\0')
            || host.parse::<std::net::IpAddr>().is_ok()
            || !host.is_empty() && is_name(host);
        if !can_be {
            return Err(UrlError::Host(host.to_owned()));
        }
        Ok(Self {
            host: Some(host.to_owned()),
            port: None,
        })
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
}

fn port(text: &str) -> Result<u16, UrlError> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(UrlError::Port),
    }
}

fn session(value: &str) -> Result<(), UrlError> {
    match value {
        // In each of these cases the service needs a server that takes writes.
        "read-write" | "primary" | "any" => Ok(()),
        _ => Err(UrlError::Value {
            parameter: "target_session_attrs",
            value: value.to_owned(),
            expected: "the service writes, so that it is read-write, primary or any",
        }),
    }
}

fn file(parameter: &'static str, value: &str) -> Result<PathBuf, UrlError> {
    let path = Path::new(value);
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    // A key that was given in the place of its file must not be shown.
    let value = if value.contains("-----BEGIN") {
        HIDDEN
    } else {
        value
    };
    Err(UrlError::Value {
        parameter,
        value: value.to_owned(),
        expected: "it is the absolute path of a file in PEM",
    })
}

fn read(parameter: &'static str, path: &Path) -> Result<Vec<u8>, UrlError> {
    std::fs::read(path).map_err(|source| UrlError::Unreadable {
        parameter,
        path: path.to_owned(),
        source,
    })
}

fn certificates(
    parameter: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, UrlError> {
    let pem = read(parameter, path)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(parameter, path, error))?;
    if found.is_empty() {
        return Err(unusable(parameter, path, "there is no certificate in it"));
    }
    Ok(found)
}

fn unusable(parameter: &'static str, path: &Path, problem: impl ToString) -> UrlError {
    UrlError::Unusable {
        parameter,
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

/// Decodes a text whose special characters are written `%XX`; `+` is a plus, as in libpq.
fn decoded(text: &str, what: &'static str) -> Result<String, UrlError> {
    let wrong = || UrlError::Encoding(what);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next(), rest.next()].map(|digit| {
            digit
                .and_then(|digit| char::from(digit).to_digit(16))
                .and_then(|digit| u8::try_from(digit).ok())
        });
        match digits {
            [Some(high), Some(low)] => bytes.push(high * 16 + low),
            _ => return Err(wrong()),
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(wrong()),
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests;
