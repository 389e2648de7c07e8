//! What is too much, too long or no number: it is refused in clear words, and nothing is lost.
