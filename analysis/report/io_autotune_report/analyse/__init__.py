"""From data frames to the document: estimates, findings, what changed since the last night."""
