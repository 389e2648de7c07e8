"""A plausible year of a site, made from a seed: for benchmarks, demonstrations and tests."""

from generated_site.assess import assess
from generated_site.plan import Shape
from generated_site.write import write
from generated_site.year import Year, make

__all__ = ["Shape", "Year", "assess", "make", "write"]
