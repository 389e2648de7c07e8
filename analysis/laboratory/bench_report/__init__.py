"""How long the nightly report takes and how much memory, on a large generated site."""
