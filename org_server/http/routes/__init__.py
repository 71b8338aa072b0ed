"""The routes, one module per noun; each holds a ``RouteTable`` that ``wiring`` mounts."""
