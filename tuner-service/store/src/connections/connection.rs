//! A connection in use. Whatever is asked over it has an end.
//!
//! A server that is cut off without a word leaves a connection on which nothing ever arrives, and sqlx
//! sets no keepalive on its sockets. PostgreSQL's own time-outs end statements only where it can still
//! say so. Therefore each answer is waited for a little longer than PostgreSQL may take for it.

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

/// How much later than PostgreSQL would end a statement its connection is given up.
const GRACE: Duration = Duration::from_secs(2);

/// A connection, with or without a transaction around all that it is used for.
///
/// The transaction is not sqlx's, which gives a connection back to the pool as it is when it could not begin
/// in time, although the server may have begun.
pub(crate) struct Connection {
    /// Absent only when it is dropped.
    held: Option<PoolConnection<Postgres>>,
    patience: Patience,
    is_in_transaction: bool,
}

/// How long an answer is waited for.
#[derive(Debug)]
struct Patience {
    limit: Duration,
    route: Arc<Route>,
    is_over: bool,
}

impl Patience {
    async fn answered<T>(
        &mut self,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let Ok(answer) = timeout(self.limit, answer).await else {
            self.is_over = true;
            self.route.suspect();
            return Err(Unavailable::met(Outage::Silent).carried());
        };
        if let Err(error) = &answer {
            self.route.hears_of(error);
        }
        answer
    }
}

impl Connection {
    /// `statement_timeout`: after which PostgreSQL ends a statement by itself.
    pub(super) fn new(
        held: PoolConnection<Postgres>,
        statement_timeout: Duration,
        route: Arc<Route>,
    ) -> Self {
        let patience = Patience {
            limit: statement_timeout + GRACE,
            route,
            is_over: false,
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

    /// Begins a transaction by these statements.
    pub(super) async fn begin(
        mut self,
        statements: impl SqlSafeStr,
    ) -> Result<Transaction, sqlx::Error> {
        // From now on, because whether it has begun is not known if this fails.
        self.is_in_transaction = true;
        self.carry_out(statements).await?;
        Ok(Transaction(self))
    }

    /// Asks the server what it is.
    pub(super) async fn look(&mut self) -> Result<Found, sqlx::Error> {
        let (held, patience) = self.parts();
        patience.answered(route::look(held)).await
    }

    /// Keeps what was written.
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
        if self.patience.is_over {
            held.close_on_drop();
        } else if self.is_in_transaction {
            // The pool has it back once it is as it was.
            tokio::spawn(roll_back(held));
        }
    }
}

async fn roll_back(mut held: PoolConnection<Postgres>) {
    let rolled_back = sqlx::raw_sql("rollback").execute(&mut *held);
    let is_as_it_was = timeout(RELEASE_TIMEOUT, rolled_back).await;
    if !is_as_it_was.is_ok_and(|answer| answer.is_ok()) {
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
    /// Lets each statement from now on take so long, on the server and here.
    pub(crate) async fn allow(&mut self, statement_timeout: Duration) -> Result<(), sqlx::Error> {
        let millis = statement_timeout.as_millis();
        let statement = format!("set local statement_timeout = {millis}");
        // Safe: a number.
        self.0.carry_out(AssertSqlSafe(statement)).await?;
        self.0.patience.limit = statement_timeout + GRACE;
        Ok(())
    }

    /// Keeps what was written.
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.0.finish().await
    }

    /// The connection, which goes on being inside the transaction.
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
