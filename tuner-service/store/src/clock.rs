//! The database's clock, which is the only source of time.

use jiff::Timestamp;

use crate::error::{Named, StoreError};
use crate::pool::Store;
use crate::records::timestamp;

impl Store {
    /// The time now.
    pub async fn now(&self) -> Result<Timestamp, StoreError> {
        const NAME: &str = "now";
        let micros: i64 =
            sqlx::query_scalar("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
                .fetch_one(&self.pool)
                .await
                .named(NAME)?;
        timestamp(NAME, micros)
    }
}
