"""A site's day against a real store: made-up jobs, an injected clock, two rolling upgrades."""
