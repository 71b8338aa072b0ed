"""The resident process: lifecycle, local socket and dispatch."""
