"""Pure rules of the client: no clock, disk, network or randomness of their own."""
