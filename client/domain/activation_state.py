"""The opaque token that stands for what an agent has in its context.

The token names a state; the units themselves stay in the daemon's store, so that the token is short
whatever it stands for. It is signed with a key of this installation: nothing else than a token that
was issued here, for this Project and profile, is accepted, and a bad one is never taken for an empty
state. Every answer names a new state; the one before stays valid until it expires, so that two
branches of one conversation do not disturb each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from itsdangerous import BadData, URLSafeSerializer

from client.domain.delta import KnownUnit
from shared_schema.errors import ErrorCode, InterleafError

PROFILE: Final = "agent_activation.v2"
TOKEN_BYTES: Final = 4_096
EXPIRES_AFTER: Final = 7 * 24 * 3_600 * 1_000
"""Milliseconds without use after which a state is gone."""

_SALT: Final = "interleaf.activation-state.1"


@dataclass(frozen=True, slots=True)
class StateName:
    """What a token names."""

    state_id: str
    project_id: str
    profile: str = PROFILE


@dataclass(frozen=True, slots=True)
class ActivationState:
    """A state as the store keeps it: the units that the agent was told, and when it was last used."""

    name: StateName
    last_used_at: int
    """Epoch milliseconds."""
    known: Mapping[str, KnownUnit] = field(default_factory=dict)

    def expired(self, now: int) -> bool:
        """Tell whether it was unused for too long at ``now`` (epoch milliseconds)."""
        return now - self.last_used_at > EXPIRES_AFTER


def invalid_state(reason: str) -> InterleafError:
    """Return the error for a token that stands for nothing; ``reason`` is one word for the details."""
    return InterleafError(
        ErrorCode.INVALID_ACTIVATION_STATE,
        "This state is unknown here or expired. Leave state out and activate again; do not assume that "
        "earlier fragments are still valid.",
        details={"reason": reason},
    )


def sign(name: StateName, key: bytes) -> str:
    """Return the token for ``name``, authenticated with ``key`` (HMAC), safe in JSON and URLs."""
    token = _serializer(key).dumps([name.state_id, name.project_id, name.profile])
    text = token if isinstance(token, str) else token.decode()
    if len(text) > TOKEN_BYTES:
        raise ValueError("state and Project ids are too long for a token")
    return text


def read(token: str, key: bytes, project_id: str, profile: str = PROFILE) -> StateName:
    """Return what ``token`` names.

    Raises:
        InterleafError: INVALID_ACTIVATION_STATE, when the token is no token of this installation
            (``reason`` "token"), or is one of another Project or profile ("project", "profile").
    """
    if len(token) > TOKEN_BYTES:
        raise invalid_state("token")
    try:
        fields = _serializer(key).loads(token)
        state_id, token_project, token_profile = fields
    except (BadData, UnicodeError, TypeError, ValueError) as error:
        raise invalid_state("token") from error
    name = StateName(str(state_id), str(token_project), str(token_profile))
    if sign(name, key) != token:  # Base64 has several spellings of one signature; one was issued.
        raise invalid_state("token")
    if token_project != project_id:
        raise invalid_state("project")
    if token_profile != profile:
        raise invalid_state("profile")
    return name


def _serializer(key: bytes) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt=_SALT, signer_kwargs={"digest_method": hashlib.sha256})
