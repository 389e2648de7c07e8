//! TLS to the service, from a client: whose certificates are believed, and in words what is wrong
//! with the others.
//!
//! TLS keeps others from reading what is sent, and shows that the service is the one that is named.
//! It vouches for no request and no answer: their signatures do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error, RootCertStore,
};

use crate::believed::may_be_used;

/// The file of authorities cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("tls_ca: {path}: {problem}")]
pub(crate) struct AuthorityError {
    path: PathBuf,
    problem: String,
}

/// The host of `host:port`, as certificates name it; `None` if no certificate can be for it.
pub(crate) fn name(address: &str) -> Option<ServerName<'static>> {
    let (host, _) = address.rsplit_once(':')?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    ServerName::try_from(bare.unwrap_or(host).to_owned()).ok()
}

/// What a client believes: certificates of the authorities in this PEM file. Returns an error if
/// there is none in it, and to root if another user could have written it.
///
/// The file is read for each connection, so that it can be renewed while a program runs.
pub(crate) fn config(authority: &Path) -> Result<Arc<ClientConfig>, AuthorityError> {
    let unusable = |problem: String| AuthorityError {
        path: authority.to_owned(),
        problem,
    };
    let io = |error: std::io::Error| unusable(error.to_string());
    if !may_be_used(authority).map_err(io)? {
        let problem = "it must be root's, and nobody else's to write, for root to use it";
        return Err(unusable(problem.to_owned()));
    }
    let pem = std::fs::read(authority).map_err(io)?;
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(format!("it is no PEM: {error}")))?;
    let mut roots = RootCertStore::empty();
    // Bundles of systems have some that are of no use to anybody.
    let (used, _) = roots.add_parsable_certificates(certificates);
    if used == 0 {
        return Err(unusable("there is no certificate in it".to_owned()));
    }
    let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| unusable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // Each program asks once.
    config.resumption = Resumption::disabled();
    Ok(config.into())
}

fn shown(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map_or_else(|_| "never".to_owned(), |time| time.to_string())
}

/// What is wrong with whoever answers there, and what to do.
pub(crate) fn problem(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::ExpiredContext { not_after, .. } => format!(
                "its certificate ran out at {}: give the service a new one, and reload it",
                shown(*not_after)
            ),
            CertificateError::NotValidYetContext { not_before, .. } => format!(
                "its certificate is not valid before {}: is this host's clock right?",
                shown(*not_before)
            ),
            // The second: an authority of the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "no authority of tls_ca in client.toml has signed its certificate".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("{why}: name the service in client.toml as its certificate does")
            }
            why => format!("its certificate cannot be believed: {why}"),
        },
        Error::InvalidMessage(_) => {
            "what answers there speaks no TLS: has its service.toml a [tls]?".to_owned()
        }
        Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "what answers there has no TLS 1.3".to_owned()
        }
        error => error.to_string(),
    }
}
