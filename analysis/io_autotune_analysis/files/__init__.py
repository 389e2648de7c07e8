"""A report's files: JSON, CSV, a mail's text, the page, and the directory of nights."""

from io_autotune_analysis.files.nights import Earlier, Nights, NightsError, Span

__all__ = ["Earlier", "Nights", "NightsError", "Span"]
