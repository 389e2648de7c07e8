//! A connection in use, on which every wait has an end.
//!
//! If the network to a server is cut without notice, the connection stays and nothing ever arrives
//! on it, and sqlx sets no keepalive on its sockets. PostgreSQL's own time-outs end statements only
//! while it can still answer. Therefore each answer is awaited for a little longer than PostgreSQL
//! may take.

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, Describe, Either, Execute, Executor, PgConnection, Postgres, SqlSafeStr, SqlStr,
};
use tokio::time::timeout;

use super::RELEASE_TIMEOUT;
use super::outage::{Outage, Unavailable};
use super::route::{self, Found, Route};

/// The time after PostgreSQL's own limit at which the connection of a statement is given up.
const GRACE: Duration = Duration::from_secs(2);

/// A connection, with or without a transaction around all its statements.
///
/// The transaction is not sqlx's own: sqlx returns a connection to the pool unchanged if the
/// transaction could not begin in time, although the server may have begun it.
pub(crate) struct Connection {
    /// The pool's connection; absent only while it is dropped.
    held: Option<PoolConnection<Postgres>>,
    patience: Patience,
    is_in_transaction: bool,
}

/// The time for which an answer is awaited.
#[derive(Debug)]
struct Patience {
    limit: Duration,
    route: Arc<Route>,
    /// True if the session is not to be used again: an answer did not come, or it refused a write
    /// that another session may take.
    is_given_up: bool,
}

impl Patience {
    async fn answered<T>(
        &mut self,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let Ok(answer) = timeout(self.limit, answer).await else {
            self.is_given_up = true;
            self.route.suspect();
            return Err(Unavailable::met(Outage::Silent).carried());
        };
        if let Err(error) = &answer {
            self.is_given_up |= self.route.hears_of(error);
        }
        answer
    }
}

impl Connection {
    /// A connection on which PostgreSQL ends a statement by itself after `statement_timeout`.
    pub(super) fn new(
        held: PoolConnection<Postgres>,
        statement_timeout: Duration,
        route: Arc<Route>,
    ) -> Self {
        let patience = Patience {
            limit: statement_timeout + GRACE,
            route,
            is_given_up: false,
        };
        Self {
            held: Some(held),
            patience,
            is_in_transaction: false,
        }
    }

    fn parts(&mut self) -> (&mut PgConnection, &mut Patience) {
        let held = self.held.as_mut().expect("it is not dropped");
        (held, &mut self.patience)
    }

    /// Carries out statements that return nothing.
    async fn carry_out(&mut self, statements: impl SqlSafeStr) -> Result<(), sqlx::Error> {
        let (held, patience) = self.parts();
        patience
            .answered(sqlx::raw_sql(statements).execute(held))
            .await?;
        Ok(())
    }

    /// Begins a transaction with these statements.
    pub(super) async fn begin(
        mut self,
        statements: impl SqlSafeStr,
    ) -> Result<Transaction, sqlx::Error> {
        // Set before the statement runs: if it fails, it is not known whether the transaction has
        // begun.
        self.is_in_transaction = true;
        self.carry_out(statements).await?;
        Ok(Transaction(self))
    }

    /// Asks the server for its state. A session that takes no writes, where others may, is closed
    /// in the end.
    pub(super) async fn look(&mut self) -> Result<Found, sqlx::Error> {
        let (held, patience) = self.parts();
        let found = patience.answered(route::look(held)).await?;
        patience.is_given_up |= !patience.route.takes(&found);
        Ok(found)
    }

    /// Commits what was written.
    pub(crate) async fn finish(mut self) -> Result<(), sqlx::Error> {
        if self.is_in_transaction {
            self.carry_out("commit").await?;
            self.is_in_transaction = false;
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else {
            return;
        };
        if self.patience.is_given_up {
            held.close_on_drop();
        } else {
            tokio::spawn(give_back(held, self.is_in_transaction));
        }
    }
}

/// Ends a connection's transaction, if it is in one, and gives it back to the pool.
///
/// The pool takes it once it has answered all that was asked on it, and has given a sign of life.
/// By itself the pool would wait without an end for a server that has vanished, and keep the place.
async fn give_back(mut held: PoolConnection<Postgres>, is_in_transaction: bool) {
    let given = async {
        if is_in_transaction {
            sqlx::raw_sql("rollback").execute(&mut *held).await?;
        }
        held.return_to_pool().await;
        Ok::<_, sqlx::Error>(())
    };
    if !matches!(timeout(RELEASE_TIMEOUT, given).await, Ok(Ok(()))) {
        held.close_on_drop();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("is_in_transaction", &self.is_in_transaction)
            .finish_non_exhaustive()
    }
}

impl<'c> Executor<'c> for &'c mut Connection {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (held, patience) = self.parts();
        let rows = held.fetch_many(query);
        stream::try_unfold((rows, patience), |(mut rows, patience)| async {
            let row = patience.answered(rows.try_next()).await?;
            Ok(row.map(|row| (row, (rows, patience))))
        })
        .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let (held, patience) = self.parts();
        Box::pin(patience.answered(held.fetch_optional(query)))
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        let (held, patience) = self.parts();
        Box::pin(patience.answered(held.prepare_with(sql, parameters)))
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        let (held, patience) = self.parts();
        Box::pin(patience.answered(held.describe(sql)))
    }
}

/// A connection inside a transaction, which is rolled back if it is dropped before it is committed.
#[derive(Debug)]
pub(crate) struct Transaction(Connection);

impl Transaction {
    /// Allows each further statement to take this long, on the server and here.
    pub(crate) async fn allow(&mut self, statement_timeout: Duration) -> Result<(), sqlx::Error> {
        let millis = statement_timeout.as_millis();
        let statement = format!("set local statement_timeout = {millis}");
        // Safe, because it is a number.
        self.0.carry_out(AssertSqlSafe(statement)).await?;
        self.0.patience.limit = statement_timeout + GRACE;
        Ok(())
    }

    /// Commits what was written.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.0.finish().await
    }

    /// The connection, still inside the transaction.
    pub(super) fn into_connection(self) -> Connection {
        self.0
    }
}

impl Deref for Transaction {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}
