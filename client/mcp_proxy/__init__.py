"""The short-lived stdio proxy between an agent host and the daemon."""
