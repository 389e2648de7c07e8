//! TLS at the TCP addresses of both doors, if the site has given the service a certificate.
//!
//! It keeps others from reading what is sent, and shows clients that the service is the one that
//! they mean. Who asks is what the request's credential says, as without it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::{Json, Router};
use io_autotune_protocol::{Check, ErrorBody, ErrorDetail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ParsedCertificate};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::metrics::Metrics;

/// How long before its end a certificate is to be renewed, at the latest.
const RENEWED_BEFORE: Duration = Duration::from_secs(14 * 86_400);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsConfig {
    /// PEM: the service's certificate, then those between it and its authority.
    certificate: PathBuf,
    /// PEM: the certificate's key, without a passphrase.
    key: PathBuf,
    /// True: who speaks clear text over TCP is refused.
    #[serde(default)]
    required: bool,
}

/// A file of `[tls]` that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("[tls] {key}: {path}: {problem}")]
pub(crate) struct TlsError {
    key: &'static str,
    path: PathBuf,
    problem: String,
}

/// A certificate in force.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    is_required: bool,
    path: PathBuf,
    /// When the first certificate of its chain runs out.
    pub(crate) ends: Timestamp,
}

/// The certificate that is in force at each time.
pub(crate) type Certificate = watch::Receiver<Option<Arc<Tls>>>;

/// Never a certificate.
pub(crate) fn none() -> Certificate {
    watch::channel(None).1
}

/// Says which certificate comes into force.
pub(crate) fn announce(tls: Option<&Tls>, metrics: &Metrics) {
    metrics.show_certificate(tls.map(|tls| tls.ends));
    match tls {
        None => {}
        Some(tls) if tls.holds(Timestamp::now()) == Holds::No => {
            tracing::error!(
                problem = tls.has_run_out(),
                "no client believes the service"
            );
        }
        Some(tls) => tracing::info!(until = %tls.ends, "TLS, by a certificate"),
    }
}

/// How long a certificate still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    Long,
    /// For less than a site should need to renew it.
    Briefly,
    /// No longer: no client believes it.
    No,
}

/// A connection, once it is known how its client speaks.
pub(crate) enum Opened {
    Encrypted(Box<TlsStream<TcpStream>>),
    Clear(TcpStream),
    /// In clear text, where TLS is required.
    Refused(TcpStream),
}

impl TlsConfig {
    /// Reads certificate and key. One that has run out is no error: clients refuse it, and the
    /// others at the service's other addresses are served.
    pub(crate) fn load(&self) -> Result<Tls, TlsError> {
        let chain = self.chain()?;
        let ends = ends(&chain).map_err(|problem| self.of_certificate(problem))?;
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| self.of_certificate(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, self.private_key()?);
        let mut config = config.map_err(|error| {
            let certificate = self.certificate.display();
            self.of_key(format!("it does not belong to {certificate}: {error}"))
        })?;
        // Clients open a connection per request, in a process per request: nothing is resumed.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Tls {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            is_required: self.required,
            path: self.certificate.clone(),
            ends,
        })
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let of_file = |error: io::Error| self.of_certificate(error.to_string());
        let pem = std::fs::read(&self.certificate).map_err(of_file)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        match chain {
            Ok(chain) if !chain.is_empty() => Ok(chain),
            Ok(_) => Err(self.of_certificate("there is no certificate in PEM in it".to_owned())),
            Err(error) => Err(self.of_certificate(format!("it is no PEM: {error}"))),
        }
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let of_file = |error: io::Error| self.of_key(error.to_string());
        if is_open(&self.key).map_err(of_file)? {
            let problem = "others can read or change it: `chown root:io-autotune` and `chmod 640`";
            return Err(self.of_key(problem.to_owned()));
        }
        let pem = std::fs::read(&self.key).map_err(of_file)?;
        PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
            let problem = "there is no private key in it that is in PEM and without a passphrase";
            self.of_key(problem.to_owned())
        })
    }

    fn of_certificate(&self, problem: String) -> TlsError {
        TlsError {
            key: "certificate",
            path: self.certificate.clone(),
            problem,
        }
    }

    fn of_key(&self, problem: String) -> TlsError {
        TlsError {
            key: "key",
            path: self.key.clone(),
            problem,
        }
    }
}

/// Returns true if anybody but root, the service and the file's group can read it, or anybody but
/// root and the service can change it.
fn is_open(path: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    let is_ours = [0, nix::unistd::geteuid().as_raw()].contains(&metadata.uid());
    Ok(!is_ours || metadata.mode() & 0o027 != 0)
}

/// When the first of these certificates runs out.
fn ends(chain: &[CertificateDer<'_>]) -> Result<Timestamp, String> {
    let each = chain.iter().map(end_of);
    let all: Vec<Timestamp> = each.collect::<Result<_, _>>()?;
    all.into_iter()
        .min()
        .ok_or_else(|| "there is no certificate in it".to_owned())
}

/// When a certificate runs out. rustls tells it only of one that has: so it is asked about a time
/// after all that a certificate can name.
fn end_of(certificate: &CertificateDer<'_>) -> Result<Timestamp, String> {
    const NEVER: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let parsed = ParsedCertificate::try_from(certificate).map_err(|error| error.to_string())?;
    let nobody = RootCertStore::empty();
    match verify_server_cert_signed_by_trust_anchor(&parsed, &nobody, &[], NEVER, &[]) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            let seconds = i64::try_from(not_after.as_secs()).unwrap_or(i64::MAX);
            Ok(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
        }
        Err(error) => Err(error.to_string()),
        Ok(()) => Err("it has no end".to_owned()),
    }
}

impl Tls {
    /// How long the certificate holds from now on.
    pub(crate) fn holds(&self, now: Timestamp) -> Holds {
        match Duration::try_from(self.ends.duration_since(now)) {
            Ok(left) if left >= RENEWED_BEFORE => Holds::Long,
            Ok(_) => Holds::Briefly,
            Err(_) => Holds::No,
        }
    }

    /// What is wrong with a certificate that holds no longer.
    pub(crate) fn has_run_out(&self) -> String {
        format!(
            "[tls] certificate: {}: it ran out at {}: clients refuse it, and jobs run with defaults",
            self.path.display(),
            self.ends
        )
    }

    /// What `doctor` says of it.
    pub(crate) fn check(&self, now: Timestamp) -> Check {
        const NAME: &str = "certificate";
        const FIX: &str = "renew the file that [tls] certificate of service.toml names, then `systemctl reload io-autotuned`";
        let clear = if self.is_required {
            "clear text is refused over TCP"
        } else {
            "clear text is taken too ([tls] required)"
        };
        match self.holds(now) {
            Holds::Long => Check::ok(NAME, format!("until {}; {clear}", self.ends)),
            Holds::Briefly => Check::warning(NAME, format!("only until {}", self.ends), FIX),
            Holds::No => Check::failed(NAME, self.has_run_out(), FIX),
        }
    }

    /// Waits for the connection's first byte, and then for the whole handshake if it begins one.
    pub(crate) async fn opened(&self, stream: TcpStream) -> io::Result<Opened> {
        /// The first byte of a handshake (RFC 8446, 5.1). No method of HTTP begins with it.
        const HANDSHAKE: u8 = 22;
        let mut first = [0];
        stream.peek(&mut first).await?;
        if first[0] == HANDSHAKE {
            let stream = self.acceptor.accept(stream).await?;
            return Ok(Opened::Encrypted(Box::new(stream)));
        }
        Ok(match self.is_required {
            false => Opened::Clear(stream),
            true => Opened::Refused(stream),
        })
    }
}

/// Answers whoever speaks clear text where TLS is required. The answer is one that clients take for
/// "not now": their jobs run with defaults, and their reports wait.
pub(crate) fn refusing() -> Router {
    Router::new().fallback(|| async {
        let error = ErrorDetail {
            code: "tls_required".to_owned(),
            message: "the service takes TLS alone at this address: write tls:HOST:PORT and tls_ca into client.toml"
                .to_owned(),
        };
        (StatusCode::SERVICE_UNAVAILABLE, Json(ErrorBody { error }))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use io_autotune_test_certificates::{Authority, Certified, LONG, OVER};

    use super::*;

    fn config(certified: &Certified) -> TlsConfig {
        TlsConfig {
            certificate: certified.certificate.clone(),
            key: certified.key.clone(),
            required: false,
        }
    }

    fn refused(certified: &Certified) -> String {
        config(certified).load().err().unwrap().to_string()
    }

    #[test]
    fn a_certificate_ends_with_the_first_of_its_chain() {
        let authority = Authority::new();
        let certified = authority.certify("a", "DNS:a", LONG);
        let tls = config(&certified).load().unwrap();
        assert_eq!(tls.ends.to_string(), "2099-01-01T00:00:00Z");
        let chained =
            [&certified.certificate, &authority.certificate()].map(|path| fs::read(path).unwrap());
        let of_authority = ends(
            &CertificateDer::pem_slice_iter(&chained[1])
                .map(Result::unwrap)
                .collect::<Vec<_>>(),
        );
        fs::write(&certified.certificate, chained.concat()).unwrap();
        let ends = config(&certified).load().unwrap().ends;
        assert_eq!(ends, of_authority.unwrap().min(tls.ends));
        let over = authority.certify("over", "DNS:a", OVER);
        let over = config(&over).load().unwrap();
        assert_eq!(over.holds(Timestamp::now()), Holds::No);
        assert!(
            over.has_run_out()
                .contains("ran out at 2021-01-01T00:00:00Z")
        );
    }

    #[test]
    fn a_certificate_is_to_be_renewed_two_weeks_before_its_end() {
        let authority = Authority::new();
        let tls = config(&authority.certify("a", "DNS:a", LONG))
            .load()
            .unwrap();
        for (before, expected) in [
            (15 * 86_400, Holds::Long),
            (13 * 86_400, Holds::Briefly),
            (1, Holds::Briefly),
            (-1, Holds::No),
        ] {
            let now = Timestamp::from_second(tls.ends.as_second() - before).unwrap();
            assert_eq!(tls.holds(now), expected, "{before}");
        }
    }

    #[test]
    fn each_file_that_cannot_be_used_is_named_with_what_is_wrong() {
        let authority = Authority::new();
        let other = authority.certify("other", "DNS:a", LONG);
        let fresh = || authority.certify("a", "DNS:a", LONG);
        let of_other = Certified {
            key: other.key.clone(),
            ..fresh()
        };
        assert!(refused(&of_other).contains("other.key: it does not belong to "));
        let swapped = Certified {
            certificate: other.key,
            ..fresh()
        };
        assert!(refused(&swapped).contains("there is no certificate in PEM in it"));
        let keyless = Certified {
            key: other.certificate,
            ..fresh()
        };
        fs::set_permissions(&keyless.key, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(refused(&keyless).contains("there is no private key in it"));
        for gone in [
            Certified {
                key: "/nonexistent".into(),
                ..fresh()
            },
            Certified {
                certificate: "/nonexistent".into(),
                ..fresh()
            },
        ] {
            assert!(refused(&gone).contains("/nonexistent: No such file"));
        }
        let broken = fresh();
        fs::write(
            &broken.certificate,
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        )
        .unwrap();
        assert!(refused(&broken).starts_with("[tls] certificate: "));
    }

    /// Attack (files): The key of the service's certificate can be read or changed by others.
    /// Outcome: The service does not begin with it, and says what to do.
    #[test]
    fn a_key_that_others_can_read_or_change_is_refused() {
        let authority = Authority::new();
        let certified = authority.certify("a", "DNS:a", LONG);
        for (mode, is_taken) in [
            (0o600, true),
            (0o640, true),
            (0o400, true),
            (0o644, false),
            (0o660, false),
            (0o602, false),
        ] {
            fs::set_permissions(&certified.key, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(config(&certified).load().is_ok(), is_taken, "{mode:o}");
        }
        assert!(refused(&certified).contains("chmod 640"));
        if nix::unistd::geteuid().is_root() {
            fs::set_permissions(&certified.key, PermissionsExt::from_mode(0o600)).unwrap();
            std::os::unix::fs::chown(&certified.key, Some(65_534), None).unwrap();
            assert!(refused(&certified).contains("others can read or change it"));
        }
    }
}
