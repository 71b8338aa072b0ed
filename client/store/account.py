"""What belongs to the installation itself: facts, the account, how far the feed was applied."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from client.store.tables import metadata
from shared_schema.org_contract import Me

_META = metadata.tables["meta"]
_ACCOUNT = metadata.tables["account"]
_SYNC = metadata.tables["sync_state"]


class MetaRepository:
    """Facts of this installation, as texts by key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> str | None:
        """Return the value, or None."""
        found = self._connection.execute(select(_META.c.value).where(_META.c.key == key)).scalar()
        return None if found is None else str(found)

    def set(self, key: str, value: str) -> None:
        """Store a value; a former one is replaced."""
        statement = insert(_META).values(key=key, value=value)
        self._connection.execute(statement.on_conflict_do_update(set_={"value": value}))


@dataclass(frozen=True, slots=True)
class AccountRow:
    """Who is signed in where. ``signed_out``: the server refused the token, Drafts wait."""

    server_url: str
    me: Me
    signed_out: bool = False


class AccountRepository:
    """The one account of this machine."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self) -> AccountRow | None:
        """Return the account, or None before the first sign-in."""
        row = self._connection.execute(select(_ACCOUNT)).first()
        if row is None:
            return None
        return AccountRow(row.server_url, Me.model_validate_json(row.me), row.signed_out)

    def put(self, account: AccountRow) -> None:
        """Store the account in place of the former one."""
        values = {
            "server_url": account.server_url,
            "me": account.me.model_dump_json(),
            "signed_out": account.signed_out,
        }
        statement = insert(_ACCOUNT).values(id=1, **values)
        self._connection.execute(statement.on_conflict_do_update(set_=values))

    def set_signed_out(self, signed_out: bool) -> None:
        """Note whether the server refuses the stored token; without an account nothing happens."""
        self._connection.execute(_ACCOUNT.update().values(signed_out=signed_out))

    def clear(self) -> None:
        """Forget the account."""
        self._connection.execute(delete(_ACCOUNT))


@dataclass(frozen=True, slots=True)
class SyncStateRow:
    """How far the server's feed was applied, and how the last round went (ms)."""

    epoch: str | None = None
    cursor: str | None = None
    last_round_at: int | None = None
    last_error: str | None = None


class SyncStateRepository:
    """The one state of synchronisation."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self) -> SyncStateRow:
        """Return the state; an empty one before the first round."""
        row = self._connection.execute(select(_SYNC)).first()
        if row is None:
            return SyncStateRow()
        return SyncStateRow(row.epoch, row.cursor, row.last_round_at, row.last_error)

    def put(self, state: SyncStateRow) -> None:
        """Store the state in place of the former one."""
        values = {
            "epoch": state.epoch,
            "cursor": state.cursor,
            "last_round_at": state.last_round_at,
            "last_error": state.last_error,
        }
        self._connection.execute(insert(_SYNC).values(id=1, **values).on_conflict_do_update(set_=values))
