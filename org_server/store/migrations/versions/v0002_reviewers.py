"""What reviewers need beside the Review: resolved comments, an inbox, reverts, Org contributions.

Columns with a foreign key are written as SQL: SQLite takes a constraint with a new column only inside
the column's definition.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BigInt = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns and tables; what is stored stays as it is."""
    _add_reference("review", "contribution_of", "review", "id")
    _add_reference("review", "reverts", "review", "id")
    op.create_index("uq_review_contribution_of", "review", ["contribution_of"], unique=True)
    op.create_index("ix_review_reverts", "review", ["reverts"], unique=False)
    op.add_column("review_comment", sa.Column("path", sa.String(), nullable=True))
    _add_reference("review_comment", "anchor_hash", "blob", "content_hash")
    _add_reference("review_comment", "resolved_by", "user_account", "id")
    op.add_column("review_comment", sa.Column("resolved_at", _BigInt, nullable=True))
    _create_inbox_item()
    _create_repeated_request()


def _add_reference(table: str, column: str, target: str, target_column: str) -> None:
    name = f"fk_{table}_{column}_{target}"
    op.execute(
        f"ALTER TABLE {table} ADD COLUMN {column} VARCHAR CONSTRAINT {name} "
        f"REFERENCES {target} ({target_column})"
    )


def _create_inbox_item() -> None:
    kinds = (
        "'review_requested', 'review_commented', 'review_decided', 'review_merged', "
        "'draft_in_conflict', 'adaptation_source_updated', 'contribution_failed'"
    )
    references = {
        "user_id": "user_account",
        "project_id": "project",
        "review_id": "review",
        "draft_id": "draft",
        "comment_id": "review_comment",
        "actor_id": "user_account",
    }
    op.create_table(
        "inbox_item",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.Column("draft_id", sa.String(), nullable=True),
        sa.Column("resource_id", sa.String(), nullable=True),
        sa.Column("comment_id", sa.String(), nullable=True),
        sa.Column("actor_id", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.Column("read_at", _BigInt, nullable=True),
        sa.Column("done_at", _BigInt, nullable=True),
        sa.CheckConstraint(f"kind IN ({kinds})", name=op.f("ck_inbox_item_kind")),
        *(
            sa.ForeignKeyConstraint([column], [f"{table}.id"], name=op.f(f"fk_inbox_item_{column}_{table}"))
            for column, table in references.items()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_inbox_item")),
        sa.UniqueConstraint("user_id", "kind", "about", name=op.f("uq_inbox_item_user_id_kind_about")),
    )
    op.create_index("ix_inbox_item_review_id", "inbox_item", ["review_id"], unique=False)
    op.create_index("ix_inbox_item_user_created", "inbox_item", ["user_id", "created_at", "id"], unique=False)


def _create_repeated_request() -> None:
    op.create_table(
        "repeated_request",
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("etag", sa.String(), nullable=True),
        sa.Column("secret_id", sa.String(), nullable=True),
        sa.Column("checks", sa.JSON(), nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_repeated_request_user_id_user_account")
        ),
        sa.PrimaryKeyConstraint("user_id", "key", name=op.f("pk_repeated_request")),
    )
    op.create_index("ix_repeated_request_created", "repeated_request", ["created_at"], unique=False)


def downgrade() -> None:
    """There is no way back."""
    raise NotImplementedError("restore a backup instead")
