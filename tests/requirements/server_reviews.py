"""Reviews: comments, differences, contributions, inbox."""

from __future__ import annotations

from typing import Final

from tests.requirements.form import R

PROMISES: Final[tuple[R, ...]] = (
    R("contribution.checked", "a contribution that cannot be is refused when it is submitted", "domain"),
    R("contribution.published", "what a merge published is offered as one Org Review", "domain"),
    R("contribution.not_selected", "a contributed resource is not selected for its Project", "domain"),
    R("contribution.failure", "a failed contribution is recorded and leaves the merge alone", "domain"),
    R("contribution.retry", "a failed contribution can be tried again by those with the right", "domain"),
    R("cli.contribute", "a Draft is offered to the Organization from the command line", "server"),
    R("contribution.once", "many tries at once make one Org Review", "domain"),
    R("comment.resolved", "a comment is resolved by whom it concerns, with who and when", "server"),
    R("comment.follows", "a comment follows its line, or says that the line is gone", "server"),
    R("comment.cli", "comments are written at lines and resolved from the command line", "server"),
)
