"""What all tables share."""

from sqlalchemy import BigInteger, CheckConstraint, Integer, MetaData, String
from sqlalchemy.orm import registry
from sqlmodel import SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

BigInt = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits on both databases; SQLite counts rows up by themselves only for INTEGER."""

ByteOrdered = String().with_variant(String(collation="C"), "postgresql")
"""Text compared byte by byte on both databases, so that a prefix is a range of the index."""

_registry = registry(metadata=MetaData(naming_convention=NAMING))


class Row(SQLModel, registry=_registry):
    """Base of the server's rows, with metadata of its own."""


metadata: MetaData = Row.metadata


def one_of(column: str, *values: str) -> CheckConstraint:
    """Return the constraint that a text column holds one of a few words."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


ROLES = ("owner", "admin", "member")
SCOPES = ("org", "project")
