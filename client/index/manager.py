"""Keeps every Project's index up to date in the background, and lends it to readers.

``wake`` is a flag without data: the worker reads the Effective Memory itself, so a lost or repeated
wake-up does no harm. A Project that fails never holds up another one.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Final

from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder
from client.frugal import give_back
from client.index.builder import Checkpoint
from client.index.files import IndexCorruptError, remove_tree
from client.index.generation import Generation
from client.index.project_build import BuildStopped, ProjectBuild
from client.index.project_index import IndexStatus, ProjectIndex
from client.index.shelf import Shelf
from client.index.vector_cache import VectorCache
from client.lull import Lull
from shared_schema.errors import ErrorCode, InterleafError

_LULL_SECONDS: Final = (0.2, 2.0)
"""A burst of wake-ups becomes one build: none for so long, or so long after the first one."""
_RETRY_SECONDS: Final = (2.0, 5.0, 15.0, 60.0)
_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class IndexManager:
    """The indexes below ``root``, one folder a Project.

    ``load_projection`` returns a Project's Effective Memory of the moment; ``embedder_source`` returns
    the embedder, or raises InterleafError while models are being prepared (tried again by itself).
    """

    def __init__(
        self,
        root: Path,
        load_projection: Callable[[str], EffectiveMemory],
        embedder_source: Callable[[], Embedder],
        cache: VectorCache,
        *,
        checkpoint: Checkpoint = lambda name: None,  # noqa: ARG005 - called by position
        monotonic: Callable[[], float] = time.monotonic,
        lull: Lull | None = None,
    ) -> None:
        self._root = root
        self._monotonic = monotonic
        self._lull = lull or Lull(*_LULL_SECONDS)
        self._projects: dict[str, ProjectIndex] = {}
        self._changed = Condition()
        self._build_lock = Lock()
        self._stopping = False
        self._worker: Thread | None = None
        self._project_build = ProjectBuild(
            load_projection, embedder_source, cache, checkpoint, lambda: self._stopping
        )

    # --- the worker ---

    def start(self) -> None:
        """Start the worker thread, once."""
        if self._worker is None:
            self._stopping = False
            self._worker = Thread(target=self._work, name="indexer", daemon=True)
            self._worker.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Ask the worker to stop and wait for it, ``timeout`` seconds at most.

        A build is given up after its current batch; what was embedded stays in the cache.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._worker is not None:
            self._worker.join(timeout)
            self._worker = None

    def wake(self, project_id: str) -> None:
        """Say that a Project's Effective Memory may have changed. Returns at once."""
        project = self._project(project_id)
        self._lull.note()
        with self._changed:
            project.dirty = True
            project.due = 0.0
            self._changed.notify_all()

    def wake_all(self) -> None:
        """Wake every Project asked for in this process, as when models have become ready."""
        for project_id in list(self._projects):
            self.wake(project_id)

    def rebuild(self, project_id: str) -> None:
        """Ask for an index that takes nothing over from the present one. Returns at once."""
        self._project(project_id).forced = True
        self.wake(project_id)

    def run_once(self) -> int:
        """Build every Project that was woken, now and here; return how many were looked at."""
        woken = self._woken(due_only=False)
        for project in woken:
            self._build(project)
        return len(woken)

    def forget(self, project_id: str) -> None:
        """Delete a Project's index; a build in progress is given up."""
        with self._changed:
            project = self._projects.pop(project_id, None)
        if project is None:
            remove_tree(self._folder(project_id))
            return
        with project.lock:
            project.forgotten = True
            project.dirty = False
            remove_tree(self._folder(project_id))

    # --- readers ---

    @contextmanager
    def pin(self, project_id: str) -> Iterator[Generation | None]:
        """Lend the serving generation, or nothing when there is none yet.

        It stays whole until the block ends, whatever is published meanwhile. When the block finds it
        broken, it is set aside, the former one serves, and a rebuild begins.

        Raises:
            InterleafError: SEARCH_INDEX_PREPARING, when the generation was found broken in the block.
        """
        project = self._opened(project_id)
        with project.lock:
            generation = project.shelf.lend()
        self._wake_where_wanting(project)
        try:
            yield generation
        except IndexCorruptError as error:
            if generation is None:
                raise
            with project.lock:
                project.shelf.set_aside(generation, error)
            self.wake(project_id)
            raise self.preparing(project_id) from error
        except InterleafError as error:
            # The generation does not do for what was asked, as when it is another model's.
            if error.code is ErrorCode.SEARCH_INDEX_PREPARING and project.idle:
                self.wake(project_id)
            raise
        finally:
            if generation is not None:
                with project.lock:
                    if not project.forgotten:
                        project.shelf.take_back(generation)

    def preparing(self, project_id: str) -> InterleafError:
        """Return the error for a search without a generation, with the build's progress."""
        status = self.status(project_id)
        if status.error_code is not None and status.state in ("none", "failed"):
            message = f"There is no search index yet: {status.error}"
        else:
            message = "The search index is being built. Try again shortly; loading by path works meanwhile."
        return InterleafError(
            ErrorCode.SEARCH_INDEX_PREPARING, message, details={"done": status.done, "total": status.total}
        )

    def status(self, project_id: str) -> IndexStatus:
        """Tell where a Project's index stands."""
        project = self._opened(project_id)
        with project.lock:
            project.shelf.check()
        self._wake_where_wanting(project, first=False)
        return project.status()

    def _wake_where_wanting(self, project: ProjectIndex, *, first: bool = True) -> None:
        """Wake the builder where an index was found broken, or was asked for the ``first`` time."""
        if (project.wanting or (first and project.shelf.current is None)) and project.idle:
            self.wake(project.project_id)

    # --- building ---

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._stopping or self._any_due()):
                    self._changed.wait(self._until_due())
                if self._lull.wait(lambda seconds: self._changed.wait_for(lambda: self._stopping, seconds)):
                    return
            for project in self._woken(due_only=True):
                self._build(project)

    def _any_due(self) -> bool:
        now = self._monotonic()
        return any(project.dirty and project.due <= now for project in self._projects.values())

    def _until_due(self) -> float | None:
        waiting = [project.due for project in self._projects.values() if project.dirty]
        return max(0.01, min(waiting) - self._monotonic()) if waiting else None

    def _woken(self, *, due_only: bool) -> list[ProjectIndex]:
        """Take the flags of the woken Projects."""
        with self._changed:
            now = self._monotonic()
            woken = [p for p in self._projects.values() if p.dirty and (p.due <= now or not due_only)]
            for project in woken:
                project.dirty = False
            return woken

    def _build(self, project: ProjectIndex) -> None:
        """Bring one Project's index up to date; failures are kept for ``status`` and tried again."""
        with self._build_lock:
            error: InterleafError | None = None
            try:
                self._opened(project.project_id)
                with project.lock:
                    project.building = True
                error = self._project_build.run(project)
            except BuildStopped:
                project.dirty = not project.forgotten
            self._settle(project, error)
            give_back()

    def _settle(self, project: ProjectIndex, error: InterleafError | None) -> None:
        with self._changed, project.lock:
            project.building = False
            project.error = error
            if error is None:
                project.failures = 0
            elif not project.forgotten:
                delay = _RETRY_SECONDS[min(project.failures, len(_RETRY_SECONDS) - 1)]
                project.failures += 1
                project.dirty = True
                project.due = self._monotonic() + delay
            self._changed.notify_all()

    # --- Projects ---

    def _folder(self, project_id: str) -> Path:
        name = project_id
        if not _SAFE.fullmatch(name):
            name = hashlib.sha256(project_id.encode("utf-8", "surrogatepass")).hexdigest()
        return self._root / name

    def _project(self, project_id: str) -> ProjectIndex:
        with self._changed:
            if (project := self._projects.get(project_id)) is None:
                project = ProjectIndex(project_id, Shelf(self._folder(project_id)))
                self._projects[project_id] = project
            return project

    def _opened(self, project_id: str) -> ProjectIndex:
        """Return a Project whose newest whole generation is open; reads its files the first time."""
        project = self._project(project_id)
        project.open()
        return project
