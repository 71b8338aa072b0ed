"""The one place that constructs the server and connects its parts."""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from flask import Flask

from org_server.clock import Clock, system_clock
from org_server.config import Settings, database_url
from org_server.http.app import create_app as assemble
from org_server.http.openapi import RouteTable
from org_server.http.routes import (
    admin,
    commits,
    drafts,
    history,
    me,
    members,
    memories,
    projects,
    reviews,
    selections,
    snapshot,
    sync,
)
from org_server.store.engine import build_engine
from org_server.store.schema import require_current
from org_server.store.unit_of_work import UnitOfWorkFactory

ROUTES: Final[tuple[RouteTable, ...]] = (
    me.routes,
    projects.routes,
    members.routes,
    memories.routes,
    selections.routes,
    drafts.routes,
    reviews.routes,
    sync.routes,
    snapshot.routes,
    commits.routes,
    history.routes,
    admin.routes,
)


def server_version() -> str:
    """Return the release of this server."""
    return version("interleaf")


def build_app(units: UnitOfWorkFactory, settings: Settings) -> Flask:
    """Return the application on a database that is open already."""
    return assemble(units, settings, ROUTES, server_version(), lambda: require_current(units.engine))


def build_units(url: str, clock: Clock = system_clock) -> UnitOfWorkFactory:
    """Return transactions on the database at ``url``, whatever its schema."""
    return UnitOfWorkFactory(build_engine(url), clock)


def create_app() -> Flask:
    """Return the application as the environment configures it; for a WSGI server with many processes.

    Raises ``schema_mismatch`` unless the database's schema is this release's.
    """
    settings = Settings()
    units = build_units(database_url(settings, None))
    require_current(units.engine)
    return build_app(units, settings)
