"""The service on PostgreSQL as sites have it: with TLS, over PgBouncer, with a standby."""
