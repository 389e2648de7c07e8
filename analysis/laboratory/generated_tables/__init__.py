"""Tables with known structure: what a measured table may have, one trait at a time."""
