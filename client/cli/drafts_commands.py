"""``interleaf draft``: changes that are on this machine or under review, not yet published."""

from __future__ import annotations

from typing import Annotated

import typer

from client.cli.contributing import Contribute, offers
from client.cli.diffing import print_diff
from client.cli.local import ask, chosen, chosen_or_all, explained
from client.cli.memory_commands import ResourceArgument, read_memory
from client.cli.options import DraftArgument, InProject, Json
from client.cli.output import busy, count, facts, moment, say, show, styled, table
from client.cli.taught import noun, verb
from client.cli.writing import edited_text, read_body
from shared_schema.daemon_contract import (
    DraftCall,
    DraftChanged,
    DraftCreateCall,
    DraftDetail,
    DraftEditCall,
    DraftItem,
    DraftList,
    DraftListCall,
    SubmitCall,
    Submitted,
)
from shared_schema.drafts import Reconciliation
from shared_schema.errors import ErrorCode
from shared_schema.memory import Scope

app = noun("interleaf draft list", "interleaf draft submit drf_… --title 'Reviews wait four hours'")

BodyFile = Annotated[
    str | None, typer.Option("--body-file", metavar="FILE", help="The whole text; - reads standard input.")
]
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="What the document is for, in a line.")
]


@verb(app, "list", "interleaf draft list", "interleaf draft list --all --json")
def list_drafts(
    project: InProject = None,
    every: Annotated[bool, typer.Option("--all", help="Merged and discarded ones too.")] = False,
    as_json: Json = False,
) -> None:
    """List your Drafts and how they stand.

    Status says where a Draft is in its life (open, submitted), freshness whether the published
    text moved since (current, behind), then, once known, whether both go together (clean,
    conflicts), and sync whether the server has it (queued to synced). In a directory
    without a Project: the Drafts of all Projects.
    """
    call = DraftListCall(project=chosen_or_all(project), all=every)
    found = ask("list_drafts", call, DraftList)
    show(
        found,
        as_json,
        lambda: table(
            ["Draft", "Path; status, freshness, sync"],
            [[item.id, styled(item.path, "bold", _standing(item))] for item in found.drafts],
            empty="No Draft. Write one with: interleaf draft create, or interleaf draft edit",
        ),
    )


@verb(app, "show", "interleaf draft show guides/code-review.md")
def show_draft(draft: DraftArgument, project: InProject = None, as_json: Json = False) -> None:
    """Show one Draft: how it stands, and what it changes."""
    found = ask("show_draft", draft_call(draft, project), DraftDetail)
    show(found, as_json, lambda: _print(found))


@verb(
    app,
    "create",
    "interleaf draft create --path guides/release.md --body-file release.md",
    "echo '# Naming' | interleaf draft create --scope org --path naming.md --body-file -",
)
def create(
    path: Annotated[
        str, typer.Option("--path", metavar="PATH", help="Where it goes, e.g. guides/release.md.")
    ],
    body_file: BodyFile = None,
    scope: Annotated[
        Scope, typer.Option("--scope", help="Whom it shall belong to: the Project, or the whole team.")
    ] = Scope.PROJECT,
    description: Description = None,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Write a new document as a Draft.

    Nothing is published before a Review. Without --body-file your editor ($VISUAL, $EDITOR) opens.
    """
    place = chosen(project)
    if body_file is not None:
        changed = create_draft(place, scope, path, read_body(body_file), description)
    else:
        with edited_text("", path) as body:
            changed = create_draft(place, scope, path, body, description)
    show(changed, as_json, lambda: _print_change(changed, "Draft"))


def create_draft(project: str, scope: Scope, path: str, body: str, description: str | None) -> DraftChanged:
    """Write a new document as a Draft."""
    call = DraftCreateCall(project=project, scope=scope, path=path, body=body, description=description)
    with explained(f"Change the document there with: interleaf draft edit {path}", ErrorCode.PATH_OCCUPIED):
        return ask("create_draft", call, DraftChanged)


@verb(
    app,
    "edit",
    "interleaf draft edit guides/release.md",
    "interleaf draft edit guides/release.md --path guides/releases.md",
    "interleaf memory show a.md --raw | sed s/x/y/ | interleaf draft edit a.md --body-file -",
)
def edit(
    resource: ResourceArgument,
    body_file: BodyFile = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="NEW", help="Move it to another path.")
    ] = None,
    description: Description = None,
    scope: Annotated[
        Scope | None,
        typer.Option("--scope", help="org: propose a change for the whole team, not only for the Project."),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Propose that the document goes away.")] = False,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Change, move or delete a document, as a Draft.

    Nothing is published before a Review. Without any of these options your editor ($VISUAL,
    $EDITOR) opens with the present text.

    Editing an Organization document makes an adaptation for this Project; with --scope org it is a
    proposal to the Organization itself. On a Draft with conflicts the given text is the resolution.
    """
    place = chosen(project)
    if delete and (body_file is not None or path is not None):
        raise typer.BadParameter("--delete goes with no new text or path", param_hint="--delete")
    call = DraftEditCall(
        project=place,
        resource=resource,
        scope=scope,
        body=None if body_file is None else read_body(body_file),
        path=path,
        description=description,
        delete=delete,
    )
    if body_file is not None or path is not None or description is not None or delete:
        changed = ask("edit_draft", call, DraftChanged)
    else:
        changed = _edit_by_hand(call)
    show(changed, as_json, lambda: _print_change(changed, "Draft"))


def _edit_by_hand(call: DraftEditCall) -> DraftChanged:
    state, content_hash = _present(call)
    with edited_text(state, call.resource) as body:
        again = call.model_copy(update={"body": body, "expected_hash": content_hash})
        return ask("edit_draft", again, DraftChanged)


def _present(call: DraftEditCall) -> tuple[str, str | None]:
    """Return the text to start from, and its hash where the daemon can check it."""
    if call.resource.startswith("drf_"):
        found = ask("show_draft", DraftCall(draft=call.resource, project=call.project), DraftDetail)
        if found.conflicts:
            say(f"Conflicts with what was published: {', '.join(found.conflicts)}", stderr=True)
        return found.state.body, None
    loaded = read_memory(call.project, call.resource)
    if loaded.draft and loaded.draft.reconciliation is Reconciliation.CONFLICTS:
        say("Your Draft has conflicts with what was published: what you save is the answer.", stderr=True)
        say(f"See both with: interleaf draft show {loaded.draft.draft_id}", stderr=True)
    return loaded.content or "", loaded.content_hash


@verb(
    app,
    "submit",
    "interleaf draft submit drf_… --title 'Reviews wait four hours'",
    "interleaf draft submit guides/a.md guides/b.md",
    "interleaf draft submit guides/a.md --contribute guides/a.md=shared/a.md",
)
def submit(
    drafts: Annotated[
        list[str],
        typer.Argument(metavar="DRAFT", help="Draft ids, resource ids or paths; published in order."),
    ],
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="What the Review is about.")
    ] = None,
    description: Annotated[
        str, typer.Option("--description", metavar="TEXT", help="What a reviewer should know.")
    ] = "",
    contribute: Contribute = None,
    project: InProject = None,
    as_json: Json = False,
) -> None:
    """Put Drafts into one Review.

    They are published together, in this order, once somebody merges it. What is still queued is
    sent first.
    """
    offered = offers(contribute)
    named = [*drafts, *(offer.draft for offer in offered)]
    place = chosen(project) if any(not draft.startswith("drf_") for draft in named) else project
    call = SubmitCall(drafts=drafts, project=place, title=title, description=description, contribute=offered)
    hint = "Bring the Draft up to date with: interleaf draft edit DRAFT. Then submit again."
    with (
        busy("Sending what is queued …", as_json=as_json),
        explained(hint, ErrorCode.RECONCILIATION_REQUIRED),
    ):
        answer = ask("submit_drafts", call, Submitted)

    def human() -> None:
        say(f"Opened Review {answer.review_id} of {count(len(answer.draft_ids), 'Draft')}: {answer.title}")
        say(f"Read it with: interleaf review diff {answer.review_id}")

    show(answer, as_json, human)


@verb(app, "discard", "interleaf draft discard drf_…")
def discard(draft: DraftArgument, project: InProject = None, as_json: Json = False) -> None:
    """Drop a Draft; what is published stays as it is."""
    changed = ask("discard_draft", draft_call(draft, project), DraftChanged)
    what = changed.path or (changed.resource_id if draft.startswith("drf_") else draft)
    show(changed, as_json, lambda: say(f"Discarded {changed.draft_id} ({what})."))


def draft_call(draft: str, project: str | None) -> DraftCall:
    """Name a Draft: ids stand alone, a resource id or path means one in a Project."""
    return DraftCall(draft=draft, project=project if draft.startswith("drf_") else chosen(project))


def _standing(item: DraftItem) -> str:
    words = [item.status.value, item.freshness.value]
    if item.reconciliation is not Reconciliation.UNKNOWN:
        words.append(item.reconciliation.value)
    words.append(item.sync_status.value)
    if item.scope is Scope.ORG:
        words.append("for the Organization")
    if item.adapts:
        words.append("adaptation")
    return ", ".join(words)


def _print_change(changed: DraftChanged, what: str) -> None:
    say(f"{what} {changed.draft_id}: {changed.path or changed.resource_id}")
    if changed.adapts:
        say(f"It adapts {changed.adapts} for this Project only.")
    say(f"Submit it for review with: interleaf draft submit {changed.draft_id}")


def _print(found: DraftDetail) -> None:
    item = found.draft
    facts(
        [
            ("Draft", item.id),
            ("Resource", item.resource_id),
            ("Path", item.path),
            ("For", "the Organization" if item.scope is Scope.ORG else "the Project"),
            ("Adapts", item.adapts),
            ("Status", item.status.value),
            ("Freshness", item.freshness.value),
            ("Reconciliation", item.reconciliation.value),
            ("Conflicts", ", ".join(found.conflicts) or None),
            ("Sync", f"{item.sync_status.value} ({count(item.operations, 'operation')})"),
            ("Review", item.review_id),
            ("Changed", moment(item.updated_at)),
            *state_changes(
                found.base.path, found.state.path, found.base.description, found.state.description
            ),
        ]
    )
    if not found.state.exists:
        say("\nThe Draft deletes the document.")
    if found.diff:
        say()
        print_diff(found.diff)
    if found.conflicts:
        say("\nResolve it by giving the whole text: interleaf draft edit DRAFT")


def state_changes(old_path: str, path: str, old_text: str, text: str) -> list[tuple[str, str | None]]:
    """Return rows for what a diff of the bodies does not show: a new path, another description."""
    moved = f"{old_path} → {path}" if old_path and path and old_path != path else None
    described = f"{old_text} → {text or 'none'}" if old_text else text
    changed = described if path and old_text != text else None
    return [("Moves", moved), ("Description", changed)]
