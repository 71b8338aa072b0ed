"""The HTTP API as a contract."""

from __future__ import annotations

from typing import Final

from tests.requirements.form import R

PROMISES: Final[tuple[R, ...]] = (
    R(
        "server.repeats.once",
        "a request with a known Idempotency-Key is answered again, not done again",
        "server",
    ),
    R("server.repeats.mismatch", "a key used for another request is refused", "server"),
    R("server.repeats.failure", "a refused request with a key is neither recorded nor done", "server"),
    R("server.repeats.kept", "recorded answers are forgotten after a day", "server"),
    R(
        "server.repeats.secret",
        "a secret in an answer is not kept, its repetition names what to revoke",
        "server",
    ),
    R("server.repeats.access", "an answer is repeated only to who may still do what was done", "server"),
    R("server.repeats.concurrent", "of concurrent repetitions exactly one acts", "server"),
    R("client.submit.lost_answer", "a submission made again after a lost answer succeeds once", "sync"),
    R("client.repeats", "the client fetches a lost answer under the key of its request", "sync"),
    R("server.repeats.atomic", "effect and recorded answer are one transaction", "server"),
    R("server.api.one_error", "every route refuses in the one error form, with the request's id", "server"),
)
