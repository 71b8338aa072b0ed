"""A Project's whole view, streamed from one consistent state."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from org_server.domain.permissions import Action, Actor
from org_server.services import access
from org_server.services.published import as_published
from org_server.store.commits import ref_answer
from org_server.store.unit_of_work import UnitOfWorkFactory
from org_server.store.versions import count_live, live_page
from shared_schema.org_contract import SnapshotEnd, SnapshotHeader

PAGE: Final = 50
"""Resources that are held in memory at once."""


class Snapshot:
    """A snapshot to iterate over once, in lines of JSON; `close` it whatever happens.

    The read transaction is open until then, so every line is of the commit that the header names,
    whatever is published meanwhile.
    """

    def __init__(self, units: UnitOfWorkFactory, actor: Actor, project_id: str) -> None:
        """Open the transaction and check access; ``not_found`` where the caller sees no Project."""
        self._stack = ExitStack()
        try:
            self._uow = self._stack.enter_context(units.read())
            access.require_project(self._uow, actor, Action.PROJECT_READ, project_id)
            self.header = SnapshotHeader(
                project_id=project_id,
                ref=ref_answer(self._uow, project_id),
                count=count_live(self._uow, project_id),
            )
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Iterator[bytes]:
        """Yield the header, one resource a line, and the end."""
        yield _line(self.header.model_dump_json())
        count = 0
        after = ""
        while page := live_page(self._uow, self.header.project_id, after, PAGE):
            for row, body in page:
                yield _line(as_published(row, body).model_dump_json())
            count += len(page)
            after = page[-1][0].resource_id
            self._uow.session.expunge_all()
        yield _line(SnapshotEnd(count=count).model_dump_json())

    def close(self) -> None:
        """End the transaction; again is fine."""
        self._stack.close()


def _line(text: str) -> bytes:
    return text.encode() + b"\n"
