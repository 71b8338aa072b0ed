"""The command line `interleaf-server`."""
