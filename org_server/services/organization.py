"""The Organization itself: its foundation, its policy and its audit."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError
from sqlmodel import col, select

from org_server.domain.permissions import Action, Actor
from org_server.domain.refs import require_version
from org_server.services import access, pages, tokens, users
from org_server.services.validation import invalid
from org_server.store.tables import AuditEventRow, OrgRow
from org_server.store.unit_of_work import UnitOfWork, UnitOfWorkFactory
from shared_schema import ids, limits
from shared_schema.errors import ErrorCode, InterleafError
from shared_schema.org_contract import (
    AuditEvent,
    AuditPage,
    Policy,
    PolicyAnswer,
    Role,
    TokenCreate,
    UserCreate,
)


@dataclass(frozen=True, slots=True)
class Founded:
    """What a new Organization starts with; ``token`` is the owner's and is shown once."""

    org_id: str
    user_id: str
    token: str


def found_organization(units: UnitOfWorkFactory, name: str, owner_email: str) -> Founded:
    """Create the Organization with its first owner; ``already_exists`` where there is one."""
    if not name.strip() or not name.isprintable() or len(name) > limits.NAME_CHARACTERS:
        raise InterleafError(
            ErrorCode.INVALID_ARGUMENTS,
            f"The Organization needs a readable name of at most {limits.NAME_CHARACTERS} characters.",
        )
    try:
        owner = UserCreate(email=owner_email, role=Role.OWNER)
    except ValidationError as error:
        raise invalid(error) from None
    with units.write() as uow:
        if uow.session.exec(select(OrgRow)).first() is not None:
            raise InterleafError(
                ErrorCode.ALREADY_EXISTS,
                "This database holds an Organization already. Use it, or choose another directory.",
            )
        org = OrgRow(id=ids.new_id("org"), name=name.strip(), epoch=ids.new_id("evt"), created_at=uow.now)
        uow.add(org)
        uow.audit(None, "org.founded", org.id, {"name": org.name})
        user = users.add_user(uow, owner, None)
        issued = tokens.issue(uow, TokenCreate(user=user.id, label="first token"), None)
        return Founded(org.id, user.id, issued.token)


def read_policy(units: UnitOfWorkFactory, actor: Actor) -> PolicyAnswer:
    """GET /admin/policy."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MANAGE)
        return _policy(uow)


def change_policy(units: UnitOfWorkFactory, actor: Actor, change: Policy, expected: int) -> PolicyAnswer:
    """PATCH /admin/policy: only the fields that were sent."""
    with units.write() as uow:
        access.require_org(uow, actor, Action.ORG_MANAGE)
        org = uow.org
        require_version(expected, org.policy_version)
        given = change.model_dump(include=change.model_fields_set)
        changed = {field: value for field, value in given.items() if getattr(org, f"policy_{field}") != value}
        if changed:
            for field, value in changed.items():
                setattr(org, f"policy_{field}", value)
            org.policy_version += 1
            uow.session.add(org)
            uow.audit(actor.user_id, "policy.changed", org.id, changed)
        return _policy(uow)


def list_audit(units: UnitOfWorkFactory, actor: Actor, page: pages.PageQuery) -> AuditPage:
    """GET /admin/audit, newest first."""
    with units.read() as uow:
        access.require_org(uow, actor, Action.ORG_MANAGE)
        statement = select(AuditEventRow).order_by(col(AuditEventRow.seq).desc()).limit(page.limit + 1)
        if (after := page.after("audit", int)) is not None:
            statement = statement.where(col(AuditEventRow.seq) < after[0])
        rows, cursor = page.cut("audit", list(uow.session.exec(statement)), lambda row: (row.seq,))
        return AuditPage(
            events=[
                AuditEvent(
                    seq=row.seq or 0,
                    at=row.at,
                    actor_id=row.actor_id,
                    action=row.action,
                    subject=row.subject,
                    data=row.data,
                )
                for row in rows
            ],
            next_cursor=cursor,
        )


def _policy(uow: UnitOfWork) -> PolicyAnswer:
    org = uow.org
    return PolicyAnswer(
        policy=Policy(
            required_approvals=org.policy_required_approvals,
            allow_self_approval=org.policy_allow_self_approval,
        ),
        version=org.policy_version,
    )
