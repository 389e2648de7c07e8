"""What users who mean harm send the service, by arguments of ``flood``."""

from __future__ import annotations

KINDS = {
    "description": ("--connections=128", "openapi"),
    "description over TCP": ("--connections=128", "--tcp", "openapi"),
    "long lists": ("--connections=32", "runs"),
    "lists of studies": ("--connections=32", "studies"),
    "no credentials": ("--connections=32", "refused"),
    "bodies over TCP": ("--connections=300", "--tcp", "bodies"),
    "dripping bodies": ("--connections=64", "drip"),
    "long dripping bodies": ("--connections=64", "--length=1000000", "drip"),
    "silence": ("--connections=600", "silence"),
    "silence at the door for nodes": ("--connections=600", "--nodes", "--tcp", "silence"),
}
"""What a user sends, by arguments of ``flood`` (tests/load/src/bin/flood.rs)."""
