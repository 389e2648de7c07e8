use std::io;

use rustls::{AlertDescription, CertificateError};

use super::*;

fn of_io(error: io::Error) -> Outage {
    Outage::of_connecting(&sqlx::Error::Io(error))
}

fn of_tls(error: rustls::Error) -> Outage {
    of_io(io::Error::new(io::ErrorKind::InvalidData, error))
}

#[test]
fn what_a_connection_fails_by_is_called_what_it_is() {
    let kind = |kind: io::ErrorKind| of_io(kind.into());
    assert_eq!(kind(io::ErrorKind::ConnectionRefused), Outage::Refused);
    assert_eq!(kind(io::ErrorKind::NotFound), Outage::NoSocket);
    assert_eq!(kind(io::ErrorKind::TimedOut), Outage::Silent);
    assert!(matches!(
        kind(io::ErrorKind::HostUnreachable),
        Outage::Unreachable(_)
    ));
    assert!(matches!(
        kind(io::ErrorKind::UnexpectedEof),
        Outage::Lost(_)
    ));
    let lookup =
        io::Error::other("failed to lookup address information: Name or service not known");
    assert!(matches!(of_io(lookup), Outage::UnknownHost(_)));
    let issuer = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
    assert_eq!(
        of_tls(issuer).to_string(),
        "has a certificate that is not trusted: sslrootcert does not have its authority"
    );
    let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
    assert!(matches!(of_tls(alert), Outage::ClientCertificate(_)));
}

#[test]
fn each_server_is_named_with_what_is_wrong_there_and_a_remedy_is_said_once() {
    let unavailable = Unavailable::of(vec![
        ("h1:5432".to_owned(), Outage::Refused),
        ("h2:5432".to_owned(), Outage::Refused),
        ("h3:5433".to_owned(), Outage::ReadOnly(ReadOnly::Standby)),
    ]);
    assert_eq!(
        unavailable.to_string(),
        "h1:5432 refuses the connection: no server listens there; h2:5432 refuses the connection: no server \
         listens there; h3:5433 takes no writes: it is a standby"
    );
    assert!(unavailable.can_be_read());
    let remedy = unavailable.remedy();
    assert_eq!(
        remedy.matches("start PostgreSQL there").count(),
        1,
        "{remedy}"
    );
    assert!(remedy.contains("; promote it"), "{remedy}");
}

#[test]
fn over_a_pooler_each_transaction_sets_its_own_limits_and_nothing_is_prepared() {
    let session = |pooler| Session {
        connections: 1,
        acquire_timeout: Duration::from_millis(900),
        statement_timeout: Duration::from_secs(10),
        pooler,
    };
    let options = |pooler| session(pooler).applied(PgConnectOptions::new_without_pgpass());
    let own = options(Pooler::None).get_options().unwrap().to_owned();
    assert!(
        own.contains("-c statement_timeout=10000 -c lock_timeout=1000 "),
        "{own}"
    );
    assert_eq!(session(Pooler::None).opening("begin"), "begin");
    assert_eq!(options(Pooler::Transaction).get_options(), None);
    assert_eq!(
        session(Pooler::Transaction).opening("begin"),
        "begin; deallocate all; set local statement_timeout = 10000; set local lock_timeout = 1000; \
         set local idle_in_transaction_session_timeout = 10000; set local jit = off"
    );
}
