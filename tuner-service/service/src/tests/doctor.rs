//! What the service says of itself: doctor, health, readiness, metrics.
