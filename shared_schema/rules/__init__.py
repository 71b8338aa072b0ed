"""Rules that client and server must apply in exactly the same way: pure functions only."""
