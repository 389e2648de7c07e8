//! What a user is told at submission.
