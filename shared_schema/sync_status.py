"""The five states of an operation on its way to the server.

::

    queued ──claim──▶ syncing ──accepted──▶ synced
      ▲                 │  │
      │ due, wake       │  └──refused──▶ failed ──`outbox retry`──▶ queued
      └──── retrying ◀──┘ no answer, 5xx, 429, signed out, access lost

``synced`` and ``failed`` are the only resting states. ``synced`` says that the Draft reached the
server, never that it was approved or published.
"""

from enum import StrEnum


class SyncStatus(StrEnum):
    """Where an operation is between this machine and the server."""

    QUEUED = "queued"
    SYNCING = "syncing"
    RETRYING = "retrying"
    SYNCED = "synced"
    FAILED = "failed"


class ParkingCause(StrEnum):
    """Why a retrying operation waits for something else than time."""

    SIGNED_OUT = "signed_out"
    ACCESS_LOST = "access_lost"
