"""Import and export."""

from __future__ import annotations

from typing import Final

from tests.requirements.form import R

PROMISES: Final[tuple[R, ...]] = (
    R("transfer.exact", "an imported body is byte for byte the file's", "domain"),
    R("transfer.split", "pieces of a split file joined together are the file", "domain"),
    R("transfer.graph", "a graph's entities become documents, bad lines are named", "domain"),
    R("transfer.refusals", "what cannot be a document is refused with code and reason", "domain"),
    R("transfer.sources", "folders, vaults, files and standard input are read", "domain"),
    R("transfer.export.folder", "an exported folder holds every text at its path", "domain"),
    R("transfer.export.private", "an exported folder is closed to the world", "quality"),
    R("transfer.export.safe", "an export never writes or removes outside its folder", "quality"),
    R("transfer.import.local", "imported documents become local Drafts, a batch at once", "domain"),
    R("transfer.import.again", "importing the same source again changes nothing", "domain"),
    R("transfer.import.org", "documents for the Organization become Org Drafts", "domain"),
    R("transfer.import.refusals", "a refused document holds no other one up", "domain"),
    R("transfer.import.dry-run", "a dry run tells the report and changes nothing", "domain"),
    R("transfer.export.memory", "an export is what is published, or what agents see", "domain"),
    R("transfer.server.import", "an operator publishes a folder in a Project, byte for byte", "domain"),
    R("transfer.description", "the front matter's description is taken, the body kept", "domain"),
)
