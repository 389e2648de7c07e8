"""From the document to files: the page, JSON, CSV, a mail's text, and the archive of nights."""
