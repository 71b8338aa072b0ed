"""The manifest of promised behaviours.

Each has an id, where the promise was made, and one sentence. Tests carry the id with
``@pytest.mark.requirement("id")``; ``tests/test_requirements.py`` fails when an id has no test, or a
test names an id that is not here. A promise not kept yet is data, not silence: it says why in
``deferred``.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class R(NamedTuple):
    """One promised behaviour."""

    id: str
    sentence: str
    source: str
    """``contract`` (the tool contract), or the subject: domain, server, retrieval, sync, quality."""
    deferred: str = ""


REQUIREMENTS: Final[tuple[R, ...]] = (
    R("manifest.two-way", "every promise has a test and every test's promise is listed", "quality"),
    R("hashing.content", "a content hash is sha256 of the UTF-8 text", "domain"),
    R("hashing.canonical", "canonical JSON has sorted keys, no spaces, UTF-8", "domain"),
    R("ids.form", "a fresh id is a prefix and a UUIDv7", "domain"),
    R("ids.older", "resource ids of every generation are recognised", "domain"),
    R("paths.accepted", "paths in every script are accepted unchanged", "domain"),
    R("paths.refused", "a bad path is refused by the named rule, printable", "domain"),
    R("paths.nfc", "a path is stored in NFC", "domain"),
    R("paths.id_like", "an id is no path", "domain"),
    R("paths.twins", "case and normalisation twins share one key", "domain"),
    R("paths.clash", "equal paths, ancestors and descendants clash", "domain"),
    R("text.body.accepted", "every kind of text can be a body, unchanged", "domain"),
    R("text.body.refused", "blank texts, NUL and lone surrogates are no bodies", "domain"),
    R("text.body.size", "a body has at most 1 MiB of UTF-8", "domain"),
    R("text.description", "a description has at most 2,000 characters", "domain"),
    R("text.title", "the title is the first top heading outside code, else the name", "domain"),
    R("text.front_matter", "only whole front matter is taken off", "domain"),
    R("replacements.atomic", "replacements apply to one original, all or none", "domain"),
    R("replacements.ambiguous", "text that occurs twice is refused with its lines", "domain"),
    R("replacements.refused", "the failing replacement is named by index", "domain"),
    R("replacements.no_change", "an edit that changes nothing is refused", "domain"),
    R("replacements.exact", "matching is by code points", "domain"),
    R("replacements.line_endings", "a difference in line endings only is said", "quality"),
    R("replacements.messages", "messages hold nothing of the texts", "quality"),
    R("replacements.law", "the result is that of the slow reference", "domain"),
    R("replacements.bounded", "repetitive texts are searched in linear time", "quality"),
    R("reconcile.clean", "changes that go together are clean", "domain"),
    R("reconcile.conflicts", "what does not go together comes back as values", "domain"),
    R("reconcile.path_occupied", "a result in another resource's way is a conflict", "domain"),
    R("reconcile.laws", "reconciliation obeys the laws of a merge", "domain"),
    R("reconcile.merge.laws", "merging is symmetric and keeps one-sided changes", "domain"),
    R("reconcile.merge.git", "git merges distinct-line documents alike", "domain"),
    R("reconcile.merge.touching", "hunks that touch conflict", "domain"),
    R("reconcile.merge.bytes", "a merge keeps line endings byte for byte", "domain"),
    R("reconcile.merge.bounded", "unrelated 1 MiB texts end in a conflict in bounded time", "quality"),
    R("chain.commit_id", "a commit id is the hash of the documented JSON", "domain"),
    R("chain.verify", "a step that does not verify is refused with its reason", "domain"),
    R("chain.effective_hash", "the effective hash covers all visible fields", "domain"),
    R("chain.review_result_hash", "an approval is bound to states, targets and order", "domain"),
    R("drafts.operation_fields", "an operation takes exactly its kind's fields", "domain"),
    R("drafts.apply", "an operation makes the state its kind says", "domain"),
    R("errors.table", "every code has kind, status and next step", "domain"),
    R("errors.wire", "an error survives the wire", "domain"),
    R("errors.retry", "only unavailable and not_ready may be retried", "domain"),
    R("errors.unknown", "an unknown code is an internal error that names it", "domain"),
    R("errors.fields", "fields of invalid_arguments travel as a list", "domain"),
    # End to end, through real programs.
    R("job.end-to-end", "a stored change is reviewed, merged and found on another machine", "contract"),
    R("store.create", "create makes a durable Draft of the Project", "contract"),
    R("store.adaptation", "editing an Org reference makes an adaptation with an id of its own", "contract"),
    R("review.merge", "a merged Review moves the ref and reaches every member", "domain"),
    R("activate.own-draft", "an agent finds its own Draft in the next call", "retrieval"),
    R("activate.delta", "fragments come as add, replace, reuse and removed", "contract"),
    R("activate.chinese", "Chinese questions find Chinese documents", "retrieval"),
    R("sync.outage", "a store during an outage waits as retrying and arrives", "sync"),
    R("sync.durable", "what was acknowledged survives a killed daemon", "sync"),
    R("review.permissions", "a member may submit but not decide or merge", "domain"),
    R("draft.dimensions", "freshness and reconciliation are told apart, conflicts kept as values", "domain"),
    R("tool.one", "exactly one tool named memory is listed", "contract"),
    R("tool.size", "the list of tools stays under 4,096 bytes in the plain schema dialect", "contract"),
    R("tool.guidance", "instructions name the guide's path and no other tool", "contract"),
    R("tool.examples", "the contract's examples work as written", "contract"),
    R("error.invalid_arguments", "wrong arguments are refused with each field and problem", "contract"),
    R("error.text_replacement", "replacements that do not fit are refused whole, by index", "contract"),
    R("error.memory_content_changed", "a stale hash is refused with the current one", "contract"),
    R("error.line_endings", "a match that only fails by line endings says so", "quality"),
    R("error.memory_resource_not_found", "one missing target fails the load with suggestions", "contract"),
    R("error.paths", "taken and impossible paths are refused", "contract"),
    R("error.draft_not_found", "discarding what has no Draft is refused", "contract"),
    R("error.invalid_activation_state", "a foreign state is refused, never an empty one", "contract"),
    R("error.org_reference_not_deletable", "store does not delete Org references", "contract"),
    R("error.project_binding_not_found", "an unbound directory is told how to bind", "contract"),
    R("error.project_binding_changed", "a running proxy is never retargeted", "contract"),
    R("error.project_access_lost", "a removed member loses the text but no Draft", "contract"),
    R("error.search_model", "without models activate says so, load and store work", "contract"),
    R("error.daemon_unavailable", "a dead daemon is named with its remedy, the proxy recovers", "contract"),
    R("error.agent_runtime_mismatch", "another build is refused and executes nothing", "contract"),
    R("error.storage_full", "a full disk refuses writes and goes on reading", "sync"),
    R("daemon.single", "a second daemon is refused and names the first", "sync"),
    R("daemon.private", "files and sockets belong to the user alone", "sync"),
    R("daemon.killed", "a killed daemon starts again with everything it had", "sync"),
    R("daemon.newer-database", "a newer database is refused and left alone", "sync"),
    R("proxy.ends", "a proxy ends with its input and leaves no process", "quality"),
    R("proxy.malformed", "malformed lines neither end a proxy nor reach its output", "quality"),
)
