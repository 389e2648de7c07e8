//! A network between a service and its database, which a test cuts.

use std::sync::Arc;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Database;

/// Passes on what comes over TCP to a database's server, and back.
#[derive(Debug)]
pub struct Relay {
    options: PgConnectOptions,
    cut: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Relay {
    /// One to this database, in the test's runtime.
    pub async fn to(database: &Database) -> Self {
        let (directory, port) = (
            database.text("select split_part(current_setting('unix_socket_directories'), ',', 1)"),
            database.text("show port"),
        );
        let server = format!("{}/.s.PGSQL.{}", directory.await, port.await);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = watch::Sender::new(false);
        let accepting = tokio::spawn(accept(listener, Arc::from(server), cut.clone()));
        Self {
            options: PgConnectOptions::new_without_pgpass()
                .host("127.0.0.1")
                .port(port)
                .username(database.options.get_username())
                .database(database.options.get_database().unwrap()),
            cut,
            accepting,
        }
    }

    /// The database's URL over it.
    #[must_use]
    pub fn url(&self) -> String {
        self.options.to_url_lossy().into()
    }

    /// From now on nothing arrives, and neither end is told.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// Connections that are made from now on are passed on; those that were cut stay cut.
    pub fn mend(&self) {
        self.cut.send_replace(false);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, server: Arc<str>, cut: watch::Sender<bool>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        tokio::spawn(pass_on(client, Arc::clone(&server), cut.subscribe()));
    }
}

async fn pass_on(mut client: TcpStream, server: Arc<str>, mut cut: watch::Receiver<bool>) {
    if *cut.borrow_and_update() {
        // It is let in, and hears nothing.
        return std::future::pending().await;
    }
    let mut server = UnixStream::connect(&*server).await.unwrap();
    tokio::select! {
        // However it ended, both ends are closed.
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = async { drop(cut.wait_for(|cut| *cut).await) } => std::future::pending().await,
    }
}
