//! Orders and pins: what decides in the place of the search, who ordered it, and how it is undone.
