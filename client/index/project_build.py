"""One Project's build, from the Effective Memory of the moment to a published generation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from client.disk import is_full
from client.domain.effective_memory import EffectiveMemory
from client.domain.embedding import Embedder
from client.index.builder import Builder, Checkpoint
from client.index.files import IndexCorruptError, remove_tree
from client.index.generation import Generation
from client.index.project_index import ProjectIndex
from client.index.vector_cache import VectorCache
from shared_schema.errors import ErrorCode, InterleafError


class BuildStopped(Exception):  # noqa: N818 - an outcome that was asked for, not an error
    """The worker was asked to stop, or the Project was forgotten, in the middle of a build."""


class ProjectBuild:
    """Builds what a Project's Effective Memory is now; the former generation serves meanwhile.

    ``stopping`` tells whether to give up after the current batch; what was embedded stays in the cache.
    """

    def __init__(
        self,
        load_projection: Callable[[str], EffectiveMemory],
        embedder_source: Callable[[], Embedder],
        cache: VectorCache,
        checkpoint: Checkpoint,
        stopping: Callable[[], bool],
    ) -> None:
        self._load_projection = load_projection
        self._embedder_source = embedder_source
        self._cache = cache
        self._checkpoint = checkpoint
        self._stopping = stopping

    def run(self, project: ProjectIndex) -> InterleafError | None:
        """Bring one Project up to date; return what failed, in words for its status.

        Raises:
            BuildStopped: it was given up.
        """
        if project.refused is not None:
            return InterleafError(ErrorCode.INTERNAL_ERROR, project.refused)
        try:
            self._build(project)
        except BuildStopped:
            raise
        except InterleafError as raised:
            return raised
        except OSError as raised:
            return _not_written(raised, project)
        except Exception as raised:  # noqa: BLE001 - one Project must not end the worker for all
            return InterleafError(
                ErrorCode.INTERNAL_ERROR, f"The search index cannot be built: {type(raised).__name__}."
            )
        return None

    def _build(self, project: ProjectIndex) -> None:
        embedder = self._embedder_source()
        memory = self._load_projection(project.project_id)

        def progress(done: int, total: int) -> None:
            project.done, project.total = done, total
            if self._stopping() or project.forgotten:
                raise BuildStopped

        builder = Builder(embedder, self._cache, progress, self._checkpoint)
        with project.lock:
            forced, project.forced = project.forced, False
            former = project.shelf.lend()
        try:
            manifest = former.manifest if former else None
            if (
                manifest is not None
                and manifest.memory_hash == memory.hash
                and manifest.versions == builder.versions
                and not forced
            ):
                project.done = project.total = manifest.units
                project.shelf.fault = None
                return
            self._build_and_publish(project, builder, memory, None if forced else former)
        finally:
            if former is not None:
                with project.lock:
                    if not project.forgotten:
                        project.shelf.take_back(former)
        self._cache.prune()

    def _build_and_publish(
        self, project: ProjectIndex, builder: Builder, memory: EffectiveMemory, former: Generation | None
    ) -> None:
        shelf = project.shelf
        building = shelf.building_folder()
        try:
            try:
                generation = builder.build(memory, building, former)
            except IndexCorruptError as error:
                if former is None:
                    raise
                # What was to be taken over may be broken itself: start from nothing, once.
                with project.lock:
                    shelf.doubt(former, error)
                remove_tree(building)
                building = shelf.building_folder()
                generation = builder.build(memory, building, None)
            self._checkpoint("before publication")
            with project.lock:
                if project.forgotten:
                    raise BuildStopped
                shelf.publish(building, generation, self._checkpoint)
                shelf.fault = None
            self._checkpoint("published")
        finally:
            remove_tree(building)
            # A Project that was forgotten meanwhile leaves no empty folder behind.
            with suppress(OSError):
                shelf.folder.rmdir()


def _not_written(error: OSError, project: ProjectIndex) -> InterleafError:
    said = f"The search index cannot be written: {error.strerror}."
    if is_full(error):
        return InterleafError(
            ErrorCode.STORAGE_FULL, f"{said} Free some room on the disk; it is tried again by itself."
        )
    folder = project.shelf.folder
    return InterleafError(
        ErrorCode.INTERNAL_ERROR, f"{said} Check who may write to {folder}; it is tried again by itself."
    )
