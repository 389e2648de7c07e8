"""What other people's libraries say, for the engine's tests to agree with."""
