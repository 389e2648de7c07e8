"""Results of other libraries, which the engine's tests must reproduce."""
