"""``interleaf eval case``: questions that agents asked, and what a person says of the answers."""

from __future__ import annotations

from typing import Annotated

import typer

from client.cli.eval_cases_report import export, report
from client.cli.local import ask, chosen_or_all
from client.cli.options import InProject, Json
from client.cli.output import busy, count, facts, moment, say, show, styled, table
from client.cli.ranking_table import prose
from client.cli.runs_commands import RunArgument
from client.cli.taught import noun, verb
from shared_schema.daemon_contract import Count
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.evaluation_contract import (
    CaseCall,
    CaseCreateCall,
    CaseDeleteCall,
    CaseDetail,
    CaseFreezeCall,
    CaseItem,
    CaseJudgeCall,
    CaseList,
    CaseListCall,
    CaseVersionItem,
    GradedTarget,
)

case_app = noun(
    "interleaf eval case create run_…",
    "interleaf eval case judge evc_… --evidence guides/release.md=3",
    "interleaf eval report",
)

CaseArgument = Annotated[
    str, typer.Argument(metavar="CASE", help="Case id, as `eval case list` shows.", show_default=False)
]
ExpectVersion = Annotated[
    int | None,
    typer.Option(
        "--expect-version",
        metavar="N",
        min=1,
        help="Change nothing if the case has another version by now.",
    ),
]
Graded = Annotated[
    list[str] | None,
    typer.Option(
        "--evidence",
        metavar="DOCUMENT[#PART]=GRADE",
        help="Grade 1 helps, 2 answers in part, 3 answers; 0 takes back what was said of it.",
    ),
]
Forbidden = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid", metavar="DOCUMENT", help="It must not be returned: superseded, stale, out of scope."
    ),
]
Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="Why; replaces the note that is there.")
]


def register(app: typer.Typer) -> None:
    """Add ``case``, ``report`` and ``export`` to the noun ``eval``."""
    app.add_typer(case_app, name="case", help="Questions that agents asked, judged by you.")
    verb(app, "report", "interleaf eval report", "interleaf eval report --project Rocket --json")(report)
    verb(
        app,
        "export",
        "interleaf eval export cases.json",
        "interleaf eval export - --no-report > cases.json",
        "interleaf eval export --as-set my-set/",
        more="The set form holds documents with their text; descriptions and grades of single parts are not "
        "in it. Where cases have different corpora, it is one folder for each.",
    )(export)


@verb(case_app, "create", "interleaf eval case create run_…")
def create(run: RunArgument, note: Note = None, as_json: Json = False) -> None:
    """Make a case of one activation.

    The run is pinned, and the documents that it searched are frozen, so that its question can be asked
    again later over exactly those. It has to be fresh: once the Project shows something else, what the
    run searched is gone, and the question has to be asked again first.
    """
    with busy("Freezing", as_json=as_json):
        call = CaseCreateCall(run_id=run, note=note or "")
        found = ask("create_evaluation_case", call, CaseDetail)

    def human() -> None:
        case = found.case
        say(f"{case.case_id} is made of {count(case.documents, 'frozen document')}.")
        say(f"What it found: interleaf runs show {case.run_id}")
        say(f"Judge it:      interleaf eval case judge {case.case_id} --evidence DOCUMENT=3")

    show(found, as_json, human)


@verb(case_app, "list", "interleaf eval case list --project Rocket")
def list_cases(project: InProject = None, as_json: Json = False) -> None:
    """List cases, oldest first.

    Those of one Project, or of all where this directory belongs to none.
    """
    place = chosen_or_all(project)
    found = ask("list_evaluation_cases", CaseListCall(project=place), CaseList)

    def human() -> None:
        table(
            ["Case", "Query; judgment"],
            [
                [case.case_id, styled(case.query, "bold", _summary(case, with_project=place is None))]
                for case in found.cases
            ],
            empty="There are no cases yet. Make one with: interleaf eval case create RUN",
        )
        if found.cases:
            say("\nHow well they are answered: interleaf eval report")

    show(found, as_json, human)


@verb(case_app, "show", "interleaf eval case show evc_…")
def show_case(case: CaseArgument, as_json: Json = False) -> None:
    """Show a case, its judgment, and what it was before."""
    found = ask("show_evaluation_case", CaseCall(case_id=case), CaseDetail)
    show(found, as_json, lambda: _print(found))


@verb(
    case_app,
    "judge",
    "interleaf eval case judge evc_… --evidence guides/release.md=3",
    "interleaf eval case judge evc_… --evidence 'guides/release.md#Sign the package=3' --forbid old.md",
    "interleaf eval case judge evc_… --none-matched --expect-version 2",
    more="A document is an id or an exact path; a part of it follows a #: a heading, or the rest of its key "
    "as `runs show --json` prints it.",
)
def judge(
    case: CaseArgument,
    evidence: Graded = None,
    forbid: Forbidden = None,
    none_matched: Annotated[
        bool, typer.Option("--none-matched", help="Nothing there answers; an empty answer is right.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Forget what was said before; else it is added to.")
    ] = False,
    note: Note = None,
    expect_version: ExpectVersion = None,
    as_json: Json = False,
) -> None:
    """Say which documents answer, and which must not be returned.

    Give --evidence and --forbid as often as needed. What is said of a document replaces what was said
    of it before; every change is a new version, and former ones are kept.
    """
    call = CaseJudgeCall(
        case_id=case,
        evidence=[_graded(each) for each in evidence or ()],
        forbid=forbid or [],
        none_matched=none_matched,
        replace=replace,
        note=note,
        expect_version=expect_version,
    )
    found = ask("judge_evaluation_case", call, CaseDetail)
    show(found, as_json, lambda: _print(found))


@verb(case_app, "freeze", "interleaf eval case freeze evc_… run_…")
def freeze(
    case: CaseArgument, run: RunArgument, expect_version: ExpectVersion = None, as_json: Json = False
) -> None:
    """Move a case onto what a newer run of its question searched.

    The judgment stays. Former versions keep the documents that were frozen for them.
    """
    call = CaseFreezeCall(case_id=case, run_id=run, expect_version=expect_version)
    with busy("Freezing", as_json=as_json):
        found = ask("freeze_evaluation_case", call, CaseDetail)
    show(found, as_json, lambda: _print(found))


@verb(case_app, "delete", "interleaf eval case delete evc_…")
def delete(case: CaseArgument, expect_version: ExpectVersion = None, as_json: Json = False) -> None:
    """Delete a case with all its versions.

    What was frozen for it alone is deleted too; its run is kept no longer than other runs.
    """
    call = CaseDeleteCall(case_id=case, expect_version=expect_version)
    found = ask("delete_evaluation_case", call, Count)
    show(found, as_json, lambda: say("The case is deleted."))


def _graded(text: str) -> GradedTarget:
    target, sign, grade = text.rpartition("=")
    if not sign or not target or grade not in ("0", "1", "2", "3"):
        problem = "end it with =1, =2 or =3 (or =0, to take it back)"
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"--evidence {text}: {problem}.",
            details={"fields": [{"field": "evidence", "problem": problem}]},
        )
    return GradedTarget(target=target, grade=int(grade))


_KINDS = {
    "unjudged": "not judged yet",
    "none_matched": "nothing there answers",
    "forbidden_only": "no evidence",
}


def _summary(case: CaseItem, *, with_project: bool) -> str:
    parts = [*_judgment(case), f"version {case.version}"]
    return ", ".join([*parts, case.project_name] if with_project else parts)


def _judgment(case: CaseItem) -> list[str]:
    parts = [_KINDS.get(case.kind) or f"{case.evidence} graded"]
    return [*parts, f"{case.forbidden} forbidden"] if case.forbidden else parts


def _print(found: CaseDetail) -> None:
    case, newest = found.case, found.versions[0]
    facts(
        [
            ("Query", case.query),
            ("Case", case.case_id),
            ("Project", case.project_name),
            ("Version", f"{case.version} of {moment(case.changed_at)}"),
            ("Corpus", f"{count(case.documents, 'document')}, as run {case.run_id} searched them"),
            ("Judgment", ", ".join(_judgment(case))),
            ("Note", newest.note or None),
        ]
    )
    if rows := _judged(newest):
        say()
        table(["Grade", "Document"], rows, empty="")
    if len(found.versions) > 1:
        say("\nBefore", style="bold")
        for version in found.versions[1:]:
            prose(_before(version), indent="- ")
    if case.kind == "unjudged":
        say(f"\nJudge it: interleaf eval case judge {case.case_id} --evidence DOCUMENT=3")


def _judged(version: CaseVersionItem) -> list[list[str]]:
    rows = [
        [str(each.grade), _named(each.path, each.resource_id, each.unit_key)] for each in version.evidence
    ]
    return rows + [["never", _named(each.path, each.resource_id, None)] for each in version.forbidden]


def _named(path: str | None, resource_id: str, unit_key: str | None) -> str:
    part = f"#{unit_key.removeprefix(f'{resource_id}/')}" if unit_key else ""
    return f"{path}{part} ({resource_id})" if path else f"{resource_id}{part}"


def _before(version: CaseVersionItem) -> str:
    said = [f"{each.path or each.resource_id}={each.grade}" for each in version.evidence]
    said += [f"never {each.path or each.resource_id}" for each in version.forbidden]
    kind = _KINDS.get(version.kind)
    words = ", ".join(([kind] if kind else []) + said)
    return f"version {version.version}, {moment(version.created_at)}: {words}"
