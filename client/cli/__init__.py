"""The command line `interleaf`."""
