//! The nonces of requests that were read. MUNGE and SACK remember them only on one host, or in one
//! process.

use std::time::Duration;

use crate::error::{Named, StoreError};
use crate::pool::Store;

impl Store {
    /// Returns true if a request is read for the first time by any replica. `nonce` has 32
    /// hexadecimal digits.
    pub async fn is_first_reading(&self, nonce: &str) -> Result<bool, StoreError> {
        let inserted = sqlx::query!(
            "insert into nonces (nonce) values (decode($1, 'hex')) on conflict do nothing",
            nonce
        )
        .execute(&self.pool)
        .await
        .named("is_first_reading")?;
        Ok(inserted.rows_affected() == 1)
    }

    /// Deletes the nonces of requests that were read `age` ago.
    pub async fn forget_nonces(&self, age: Duration) -> Result<(), StoreError> {
        sqlx::query!(
            "delete from nonces where seen_at < now() - make_interval(secs => $1)",
            age.as_secs_f64()
        )
        .execute(&self.pool)
        .await
        .named("forget_nonces")?;
        Ok(())
    }
}
