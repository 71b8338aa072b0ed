"""The Organization server: published memory, Reviews, permissions and the change feed."""
