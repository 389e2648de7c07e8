"""A plausible year of a site, made from a seed: for benchmarks, demonstrations and tests."""

from io_autotune_analysis.site.plan import Shape
from io_autotune_analysis.site.write import write
from io_autotune_analysis.site.year import Year, make

__all__ = ["Shape", "Year", "make", "write"]
