"""Alabed and Yoneki's methods on db_bench as it runs: all ten of RocksDB's parameters."""
