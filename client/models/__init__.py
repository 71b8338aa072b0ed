"""The pinned local models and how they come to this machine."""
