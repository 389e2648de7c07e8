"""Functions of the report's data that return SVG."""
