"""The page's figures: each a function of the report's data that returns an SVG."""
