"""The resident daemon, the MCP proxy and the command line of one machine."""
