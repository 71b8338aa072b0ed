"""``python -m client.mcp_proxy``: the stdio proxy without the command line around it."""

from client.mcp_proxy.server import main

if __name__ == "__main__":
    main()
