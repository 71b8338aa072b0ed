"""What pydantic found wrong, as the contract's error."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from shared_schema.errors import ErrorCode, InterleafError

_SHOWN_PROBLEMS: Final = 20


def invalid(error: ValidationError) -> InterleafError:
    """Return ``invalid_arguments`` with ``details.fields``; the values themselves are not repeated."""
    fields = [
        {"field": ".".join(str(part) for part in problem["loc"]) or "(body)", "problem": problem["msg"]}
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    shown = "; ".join(f"{item['field']}: {item['problem']}" for item in fields[:3])
    return InterleafError(
        ErrorCode.INVALID_ARGUMENTS,
        f"The request does not fit the contract. {shown}",
        details={"fields": fields[:_SHOWN_PROBLEMS]},
    )
