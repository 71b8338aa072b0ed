"""Use cases: each one reads a consistent state, lets the domain decide and commits once."""
