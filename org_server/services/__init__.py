"""Use cases of the server: one transaction each."""
