"""Measures one grid of ROMIO's hints under twelve access patterns: sites of similar applications."""
