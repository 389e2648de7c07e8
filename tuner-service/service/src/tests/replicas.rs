//! Several services on one database, and one that reads its files anew.
