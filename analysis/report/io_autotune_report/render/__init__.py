"""The document as page, JSON, CSV, mail, and archive."""
