//! An authority for a test, the certificates that it gives, by the program `openssl`, and servers
//! that have them.

#![forbid(unsafe_code)]
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test ends when it has no certificate"
)]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

/// A year that is over.
pub const OVER: (&str, &str) = ("20200101000000Z", "20210101000000Z");
/// A year that is long to come.
pub const TO_COME: (&str, &str) = ("20980101000000Z", "20990101000000Z");
/// Most of a century.
pub const LONG: (&str, &str) = ("20200101000000Z", "20990101000000Z");

const CONFIGURATION: &str = "[ca]\ndefault_ca = site\n[site]\ndatabase = index.txt\nnew_certs_dir = .\n\
certificate = ca.pem\nprivate_key = ca.key\ndefault_md = sha256\npolicy = any\nrand_serial = yes\n\
unique_subject = no\ncopy_extensions = copy\n[any]\ncommonName = supplied\n";

/// An authority. Its files are removed with it.
pub struct Authority(TempDir);

/// A certificate and its key, as files in PEM; the key is its owner's alone.
pub struct Certified {
    /// The certificate.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

impl Certified {
    /// The configuration of a server that has this certificate.
    #[must_use]
    pub fn server(&self) -> Arc<ServerConfig> {
        let chain = CertificateDer::pem_file_iter(&self.certificate).unwrap();
        let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_file(&self.key).unwrap();
        ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap()
            .into()
    }

    /// The server's side of a connection. Its first read or write makes the handshake.
    pub fn over<S: Read + Write>(&self, stream: S) -> StreamOwned<ServerConnection, S> {
        StreamOwned::new(ServerConnection::new(self.server()).unwrap(), stream)
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// Makes one.
    #[must_use]
    pub fn new() -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        // Other users of the host may read what is public.
        fs::set_permissions(authority.0.path(), PermissionsExt::from_mode(0o755)).unwrap();
        fs::write(authority.0.path().join("ca.cnf"), CONFIGURATION).unwrap();
        fs::write(authority.0.path().join("index.txt"), "").unwrap();
        authority.openssl(
            &["req", "-x509", "-days", "30000", "-subj", "/CN=ca"],
            "ca",
            "ca.pem",
        );
        authority
    }

    /// Its own certificate, by which others are believed.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }

    /// The configuration of a client that believes its certificates.
    #[must_use]
    pub fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let its_own = CertificateDer::from_pem_file(self.certificate()).unwrap();
        roots.add(its_own).unwrap();
        ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
            .into()
    }

    /// Gives a certificate for what `names` says (`DNS:localhost`, `IP:127.0.0.1`), valid from one
    /// time to another (`YYYYMMDDHHMMSSZ`). `stem` names its files.
    #[must_use]
    pub fn certify(&self, stem: &str, names: &str, (from, to): (&str, &str)) -> Certified {
        let request = format!("{stem}.csr");
        let alternatives = format!("subjectAltName={names}");
        let asking = [
            "req",
            "-new",
            "-subj",
            "/CN=service",
            "-addext",
            &alternatives,
        ];
        self.openssl(&asking, stem, &request);
        let certificate = format!("{stem}.pem");
        run(
            self.0.path(),
            &[
                "ca",
                "-batch",
                "-notext",
                "-config",
                "ca.cnf",
                "-in",
                &request,
                "-out",
                &certificate,
                "-startdate",
                from,
                "-enddate",
                to,
            ],
        );
        Certified {
            certificate: self.0.path().join(certificate),
            key: self.0.path().join(format!("{stem}.key")),
        }
    }

    /// Makes a key, and with it what the arguments say.
    fn openssl(&self, arguments: &[&str], stem: &str, out: &str) {
        let key = format!("{stem}.key");
        let of_key = [
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            &key,
            "-out",
            out,
        ];
        run(self.0.path(), &[arguments, &of_key].concat());
        fs::set_permissions(self.0.path().join(key), PermissionsExt::from_mode(0o600)).unwrap();
    }
}

fn run(directory: &Path, arguments: &[&str]) {
    let ended = Command::new("openssl")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "openssl {arguments:?}: {told}");
}
