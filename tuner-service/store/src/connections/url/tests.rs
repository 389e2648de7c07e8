use super::*;

fn read(text: &str) -> DatabaseUrl {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    let refused = text.parse::<DatabaseUrl>();
    refused.map_or_else(|error| error.to_string(), |url| panic!("{text}: {url:?}"))
}

/// Host and port of each server, in order.
fn servers(text: &str) -> Vec<(String, u16)> {
    let servers = read(text).servers().into_iter();
    servers
        .map(|options| {
            let host = match options.get_socket() {
                Some(path) => path.display().to_string(),
                None => options.get_host().to_owned(),
            };
            (host, options.get_port())
        })
        .collect()
}

#[test]
fn one_server_or_several_are_read_as_libpq_reads_them() {
    let of = |host: &str, port| (host.to_owned(), port);
    for (text, expected) in [
        ("postgres://u@h1/db", vec![of("h1", 5432)]),
        ("postgresql://h1:5433", vec![of("h1", 5433)]),
        (
            "postgres://u@h1:5432,h2:5433/db?target_session_attrs=read-write",
            vec![of("h1", 5432), of("h2", 5433)],
        ),
        (
            "postgres://u:p%40w@[::1]:6000,10.0.0.1/db",
            vec![of("::1", 6000), of("10.0.0.1", 5432)],
        ),
        (
            "postgres:///db?host=/run/a,/run/b&port=5432,5433",
            vec![of("/run/a", 5432), of("/run/b", 5433)],
        ),
        ("postgres://%2Frun%2Fa:7000/db", vec![of("/run/a", 7000)]),
        (
            "postgres:///db?host=h1,h2&port=7000",
            vec![of("h1", 7000), of("h2", 7000)],
        ),
    ] {
        assert_eq!(servers(text), expected, "{text}");
    }
}

#[test]
fn user_password_and_database_are_decoded() {
    for text in [
        "postgres://io-autotune:a%2Fb%40+c@h/my%20db",
        "postgres://h?user=io-autotune&password=a%2Fb%40+c&dbname=my%20db",
    ] {
        let url = read(text);
        assert_eq!(url.user.as_deref(), Some("io-autotune"));
        assert_eq!(url.password.as_deref(), Some("a/b@+c"));
        let options = &url.servers()[0];
        assert_eq!(options.get_username(), "io-autotune");
        assert_eq!(options.get_database(), Some("my db"));
    }
}

#[test]
fn options_reach_the_server_and_floats_need_no_startup_parameter() {
    let url = read("postgres://h/db?options[role]=io-autotune-migrate&options=-c%20jit%3Doff");
    let options = url.servers()[0].get_options().unwrap().to_owned();
    assert_eq!(options, "-c role=io-autotune-migrate -c jit=off");
}

#[test]
fn how_the_way_is_protected_is_read() {
    let url = read(
        "postgres://h/db?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem",
    );
    assert_eq!(url.root, Some(Root::File("/ca.pem".into())));
    assert!(matches!(
        url.servers()[0].get_ssl_mode(),
        PgSslMode::VerifyFull
    ));
    let url = read("postgres://h/db?sslmode=verify-full&sslrootcert=system");
    assert_eq!(url.root, Some(Root::System));
    let url = read("postgres://h/db?sslmode=allow");
    assert!(matches!(url.servers()[0].get_ssl_mode(), PgSslMode::Prefer));
    let url = read("postgres:///db?host=/run/a&sslmode=verify-full&sslrootcert=/ca.pem");
    assert!(matches!(
        url.servers()[0].get_ssl_mode(),
        PgSslMode::Disable
    ));
}

#[test]
fn what_libpq_alone_needs_is_let_pass() {
    read("postgres://h/db?connect_timeout=5&keepalives=1&application_name=mine");
}

/// Attack (database): The database's URL is empty, another's, or misspelt.
/// Outcome: It is refused with what to write, and no password is shown.
#[test]
fn what_cannot_start_is_refused_with_what_to_write() {
    for (text, expected) in [
        ("", "the URL is empty"),
        ("  ", "the URL is empty"),
        ("nonsense", "not a list of key=value"),
        (
            "host=db user=me dbname=io_autotune",
            "not a list of key=value",
        ),
        ("host=db options='-c a=://b'", "not a list of key=value"),
        ("mysql:///io_autotune", "mysql:// is not PostgreSQL"),
        ("Postgres://h/db", "Postgres:// is not PostgreSQL"),
        (
            "postgres://h/db?sslmode=verify_full",
            "sslmode=verify_full cannot be: it is disable",
        ),
        (
            "postgres://h/db?sslmode=verify-full",
            "sslmode=verify-full needs sslrootcert",
        ),
        (
            "postgres://h/db?sslmode=verify-ca",
            "sslmode=verify-ca needs sslrootcert",
        ),
        (
            "postgres://h/db?sslmode=require&sslrootcert=system",
            "needs sslmode=verify-full",
        ),
        ("postgres://h/db?sslrootcert=ca.pem", "the absolute path"),
        (
            "postgres://h/db?sslmod=require",
            "parameter \"sslmod\" is unknown: the service knows host",
        ),
        (
            "postgres://h/db?ssl-mode=require",
            "parameter \"ssl-mode\" is unknown",
        ),
        (
            "postgres://h/db?sslmode",
            "parameter \"sslmode\" has no value",
        ),
        (
            "postgres://h/db?sslcert=/c.pem",
            "given together or not at all",
        ),
        (
            "postgres://h/db?sslkey=/k.pem",
            "given together or not at all",
        ),
        (
            "postgres://h/db?target_session_attrs=standby",
            "the service writes",
        ),
        ("postgres://h:port/db", "no port"),
        ("postgres://h:0/db", "no port"),
        ("postgres://h:65536/db", "no port"),
        ("postgres://h1,h2,h3/db?port=1,2", "2 ports for 3 hosts"),
        ("postgres://h1,,h2/db", "\"\" is no host"),
        ("postgres://h 1/db", "\"h 1\" is no host"),
        ("postgres://[::1/db", "is no host"),
        ("postgres://[::g]/db", "is no host"),
        (
            "postgres://me:100%@h/db",
            "the password is not well encoded",
        ),
        (
            "postgres://h/d%ff",
            "the database's name is not well encoded",
        ),
    ] {
        let refusal = refused(text);
        assert!(refusal.contains(expected), "{text}: {refusal}");
    }
}

/// Attack (database): A password stands in the database's URL, well or wrongly encoded.
/// Outcome: It is never shown.
#[test]
fn no_password_is_shown() {
    for (text, expected) in [
        (
            "postgres://me:s3cret@h1,h2:5433/db?sslmode=require",
            "postgres://me:***@h1,h2:5433/db?sslmode=require",
        ),
        (
            "postgres://h/db?user=me&password=s3cret",
            "postgres://h/db?user=me&password=***",
        ),
        (
            "postgres://h/db?pass%77ord=s3cret&user=me",
            "postgres://h/db?password=***&user=me",
        ),
    ] {
        let url = read(text);
        assert_eq!(url.to_string(), expected);
        assert!(!format!("{url:?}").contains("cret"));
        assert_eq!(serde_json::to_value(&url).unwrap(), expected);
    }
    for text in [
        "postgres://me:1/s3cret@h/db",
        "postgres://me:1@2/s3cret@h/db",
        "postgres://me:1?s3cret@h/db",
        "postgres://me:s3cret@h:port/db",
        "host=h password=s3cret",
        "postgres://me:s3cret%@h/db",
        "postgres://h/db?sslkey=-----BEGIN%20PRIVATE%20KEY-----s3cret&sslcert=/c",
    ] {
        let refusal = refused(text);
        assert!(!refusal.contains("cret"), "{text}: {refusal}");
    }
}

#[test]
fn files_that_cannot_be_used_are_found_before_a_connection_is_made() {
    let directory = std::env::temp_dir().join(format!("io-autotune-url-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let empty = file("empty.pem", "");
    let broken = file(
        "broken.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    for (parameters, expected) in [
        (
            "sslmode=verify-full&sslrootcert=/none.pem".to_owned(),
            "sslrootcert=/none.pem: No such file",
        ),
        (
            format!("sslmode=verify-full&sslrootcert={empty}"),
            "there is no certificate in it",
        ),
        (
            format!("sslmode=verify-full&sslrootcert={broken}"),
            "broken.pem: ",
        ),
        (
            format!("sslcert={empty}&sslkey={empty}"),
            "there is no certificate in it",
        ),
    ] {
        let url = read(&format!("postgres://h/db?{parameters}"));
        let refusal = url.check_files().unwrap_err().to_string();
        assert!(refusal.contains(expected), "{parameters}: {refusal}");
    }
    read("postgres://h/db").check_files().unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}
