"""Search index generations."""
