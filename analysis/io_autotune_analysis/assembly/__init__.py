"""From frames and estimators to the document of a night."""

from io_autotune_analysis.assembly.night import Occasion, assemble

__all__ = ["Occasion", "assemble"]
