"""Estimates, findings, changes: the document."""
