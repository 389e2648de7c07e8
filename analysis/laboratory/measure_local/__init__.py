"""Measures tables of what any machine has: SQLite, LZMA and plain writes.

They have what the project's other tables lack: parametrizations that fail, and times that differ
by a hundred times and more.
"""
