"""Measures tables of what any machine has: databases, compressors, encoders, Git, sort and GCC.

They have what the project's other tables lack: parametrizations that fail, times that differ by a
hundred times and more, and switches of which few matter.
"""
