"""The comparison report: our methods, the papers' tables in their own form, other optimisers."""
