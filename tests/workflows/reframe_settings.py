"""ReFrame's site: every host, and Slurm without accounting."""

from __future__ import annotations

site_configuration = {
    "systems": [
        {
            "name": "private",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "main",
                    "scheduler": "squeue",
                    "launcher": "local",
                    "environs": ["builtin"],
                }
            ],
        }
    ],
    "environments": [{"name": "builtin"}],
}
