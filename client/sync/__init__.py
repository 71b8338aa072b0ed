"""Pushing the outbox and pulling what was published."""
