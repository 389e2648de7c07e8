"""Measures tuning inside a job on a real device."""
