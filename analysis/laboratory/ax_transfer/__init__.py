"""Ax's transfer learning on measured access patterns, beside ours."""
