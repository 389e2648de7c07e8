//! What the service does by itself: retention, sharing, assessments, drift, runs that are lost.
