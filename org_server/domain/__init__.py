"""Pure rules of the server: refs, Reviews, permissions, adaptations, reconciliation."""
