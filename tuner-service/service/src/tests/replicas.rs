//! Several services on one database, and what one of them does when its files or its database change.

mod nonces;
mod outages;
mod reload;
mod starts;
mod startup;

use super::{
    ADMIN, ALICE, Answer, BOB, CLUSTER, COLLECTOR, Log, OPERATOR, ROOT, Signed, TestJob,
    TestService,
};
