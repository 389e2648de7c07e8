"""Measures one grid of ROMIO's hints under twelve access patterns: a site's applications."""
