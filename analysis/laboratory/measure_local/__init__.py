"""Measures tables of what any machine has: SQLite, LZMA, plain writes, RocksDB, sort and GCC.

They have what the project's other tables lack: parametrizations that fail, times that differ by a
hundred times and more, and switches of which few matter.
"""
