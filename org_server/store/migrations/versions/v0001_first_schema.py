"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_BigInt = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_ByteOrdered = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create all tables, and the row that numbers the feed and serialises writers."""
    _create_audit_event()
    _create_authority_commit()
    _create_blob()
    _create_feed_counter()
    _create_feed_event()
    _create_org()
    _create_project()
    _create_user_account()
    _create_draft()
    _create_member()
    _create_review()
    _create_selection()
    _create_token()
    _create_version()
    _create_approval()
    _create_draft_operation()
    _create_review_comment()
    _create_review_draft()
    op.execute("INSERT INTO feed_counter (id, seq) VALUES (1, 0)")


def downgrade() -> None:
    """There is no way back."""
    raise NotImplementedError("restore a backup instead")


def _create_audit_event() -> None:
    op.create_table(
        "audit_event",
        sa.Column("seq", _BigInt, nullable=False),
        sa.Column("at", _BigInt, nullable=False),
        sa.Column("actor_id", sa.String(), nullable=True),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit_event")),
    )


def _create_authority_commit() -> None:
    op.create_table(
        "authority_commit",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("seq", _BigInt, autoincrement=False, nullable=False),
        sa.Column("commit_id", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=True),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.Column("author_id", sa.String(), nullable=True),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.CheckConstraint("seq >= 1", name=op.f("ck_authority_commit_seq")),
        sa.PrimaryKeyConstraint("owner", "seq", name=op.f("pk_authority_commit")),
        sa.UniqueConstraint("owner", "commit_id", name=op.f("uq_authority_commit_owner_commit_id")),
    )


def _create_blob() -> None:
    op.create_table(
        "blob",
        sa.Column("content_hash", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("content_hash", name=op.f("pk_blob")),
    )


def _create_feed_counter() -> None:
    op.create_table(
        "feed_counter",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", _BigInt, nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_feed_counter_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feed_counter")),
    )


def _create_feed_event() -> None:
    op.create_table(
        "feed_event",
        sa.Column("seq", _BigInt, autoincrement=False, nullable=False),
        sa.Column("at", _BigInt, nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("audience", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=True),
        sa.Column("user_id", sa.String(), nullable=True),
        sa.Column("draft_id", sa.String(), nullable=True),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.Column("resource_id", sa.String(), nullable=True),
        sa.Column("commit_id", sa.String(), nullable=True),
        sa.Column("commit_seq", _BigInt, nullable=True),
        sa.CheckConstraint("audience IN ('author', 'project', 'org')", name=op.f("ck_feed_event_audience")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_feed_event")),
    )
    op.create_index("ix_feed_event_project_seq", "feed_event", ["project_id", "seq"], unique=False)


def _create_org() -> None:
    op.create_table(
        "org",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("epoch", sa.String(), nullable=False),
        sa.Column("policy_required_approvals", sa.Integer(), nullable=False),
        sa.Column("policy_allow_self_approval", sa.Boolean(), nullable=False),
        sa.Column("policy_version", sa.Integer(), nullable=False),
        sa.Column("head_commit", sa.String(), nullable=True),
        sa.Column("head_seq", _BigInt, nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_org")),
    )


def _create_project() -> None:
    op.create_table(
        "project",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("guide_path", sa.String(), nullable=False),
        sa.Column("required_approvals", sa.Integer(), nullable=False),
        sa.Column("allow_self_approval", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("selection_revision", sa.Integer(), nullable=False),
        sa.Column("head_commit", sa.String(), nullable=True),
        sa.Column("head_seq", _BigInt, nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.Column("deleted_at", _BigInt, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
    )
    op.create_index(
        "uq_project_name_key_live",
        "project",
        ["name_key"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )


def _create_user_account() -> None:
    op.create_table(
        "user_account",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("email_key", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.CheckConstraint("role IN ('owner', 'admin', 'member')", name=op.f("ck_user_account_role")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_account")),
        sa.UniqueConstraint("email_key", name=op.f("uq_user_account_email_key")),
    )


def _create_draft() -> None:
    op.create_table(
        "draft",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("resource_id", sa.String(), nullable=False),
        sa.Column("author_id", sa.String(), nullable=False),
        sa.Column("installation_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reconciliation", sa.String(), nullable=False),
        sa.Column("base_commit", sa.String(), nullable=True),
        sa.Column("base_seq", _BigInt, nullable=False),
        sa.Column("org_source_resource_id", sa.String(), nullable=True),
        sa.Column("org_source_commit_id", sa.String(), nullable=True),
        sa.Column("state_exists", sa.Boolean(), nullable=False),
        sa.Column("state_path", sa.String(), nullable=False),
        sa.Column("state_description", sa.Text(), nullable=False),
        sa.Column("state_content_hash", sa.String(), nullable=True),
        sa.Column("state_source_resource_id", sa.String(), nullable=True),
        sa.Column("state_source_commit_id", sa.String(), nullable=True),
        sa.Column("last_ordinal", sa.Integer(), nullable=False),
        sa.Column("review_id", sa.String(), nullable=True),
        sa.Column("merged_commit", sa.String(), nullable=True),
        sa.Column("merged_seq", _BigInt, nullable=True),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.Column("updated_at", _BigInt, nullable=False),
        sa.CheckConstraint(
            "reconciliation IN ('unknown', 'clean', 'conflicts')", name=op.f("ck_draft_reconciliation")
        ),
        sa.CheckConstraint("scope IN ('org', 'project')", name=op.f("ck_draft_scope")),
        sa.CheckConstraint(
            "status IN ('open', 'submitted', 'merged', 'discarded')", name=op.f("ck_draft_status")
        ),
        sa.ForeignKeyConstraint(
            ["author_id"], ["user_account.id"], name=op.f("fk_draft_author_id_user_account")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_draft_project_id_project")),
        sa.ForeignKeyConstraint(
            ["state_content_hash"], ["blob.content_hash"], name=op.f("fk_draft_state_content_hash_blob")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_draft")),
    )
    op.create_index("ix_draft_author_id_updated", "draft", ["author_id", "updated_at"], unique=False)
    op.create_index("ix_draft_project_status", "draft", ["project_id", "status"], unique=False)
    op.create_index(op.f("ix_draft_resource_id"), "draft", ["resource_id"], unique=False)
    op.create_index(op.f("ix_draft_review_id"), "draft", ["review_id"], unique=False)


def _create_member() -> None:
    op.create_table(
        "member",
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.CheckConstraint("role IN ('owner', 'admin', 'member')", name=op.f("ck_member_role")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_member_project_id_project")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_member_user_id_user_account")
        ),
        sa.PrimaryKeyConstraint("project_id", "user_id", name=op.f("pk_member")),
    )
    op.create_index(op.f("ix_member_user_id"), "member", ["user_id"], unique=False)


def _create_review() -> None:
    op.create_table(
        "review",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("author_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("result_hash", sa.String(), nullable=False),
        sa.Column("frozen", sa.JSON(), nullable=True),
        sa.Column("contribution", sa.JSON(), nullable=True),
        sa.Column("commit_id", sa.String(), nullable=True),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.Column("updated_at", _BigInt, nullable=False),
        sa.CheckConstraint("scope IN ('org', 'project')", name=op.f("ck_review_scope")),
        sa.CheckConstraint(
            "status IN ('open', 'approved', 'merged', 'rejected', 'withdrawn')", name=op.f("ck_review_status")
        ),
        sa.ForeignKeyConstraint(
            ["author_id"], ["user_account.id"], name=op.f("fk_review_author_id_user_account")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_review_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review")),
    )
    op.create_index("ix_review_created", "review", ["created_at", "id"], unique=False)
    op.create_index("ix_review_project_created", "review", ["project_id", "created_at", "id"], unique=False)


def _create_selection() -> None:
    op.create_table(
        "selection",
        sa.Column("project_id", sa.String(), nullable=False),
        sa.Column("resource_id", sa.String(), nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_selection_project_id_project")),
        sa.PrimaryKeyConstraint("project_id", "resource_id", name=op.f("pk_selection")),
    )
    op.create_index(op.f("ix_selection_resource_id"), "selection", ["resource_id"], unique=False)


def _create_token() -> None:
    op.create_table(
        "token",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("read_only", sa.Boolean(), nullable=False),
        sa.Column("project_ids", sa.JSON(), nullable=True),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.Column("expires_at", _BigInt, nullable=True),
        sa.Column("last_used_at", _BigInt, nullable=True),
        sa.Column("revoked_at", _BigInt, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["user_account.id"], name=op.f("fk_token_user_id_user_account")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_token_hash")),
    )
    op.create_index(op.f("ix_token_user_id"), "token", ["user_id"], unique=False)


def _create_version() -> None:
    op.create_table(
        "version",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("resource_id", sa.String(), nullable=False),
        sa.Column("from_seq", _BigInt, autoincrement=False, nullable=False),
        sa.Column("to_seq", _BigInt, nullable=True),
        sa.Column("removed", sa.Boolean(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("path_key", _ByteOrdered, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(), nullable=True),
        sa.Column("source_resource_id", sa.String(), nullable=True),
        sa.Column("source_commit_id", sa.String(), nullable=True),
        sa.CheckConstraint("scope IN ('org', 'project')", name=op.f("ck_version_scope")),
        sa.CheckConstraint("removed OR content_hash IS NOT NULL", name=op.f("ck_version_content")),
        sa.CheckConstraint("to_seq IS NULL OR to_seq > from_seq", name=op.f("ck_version_range")),
        sa.ForeignKeyConstraint(
            ["content_hash"], ["blob.content_hash"], name=op.f("fk_version_content_hash_blob")
        ),
        sa.PrimaryKeyConstraint("owner", "resource_id", "from_seq", name=op.f("pk_version")),
    )
    op.create_index("ix_version_owner_from_seq", "version", ["owner", "from_seq"], unique=False)
    op.create_index("ix_version_owner_source", "version", ["owner", "source_resource_id"], unique=False)
    op.create_index("ix_version_resource", "version", ["resource_id"], unique=False)
    op.create_index(
        "uq_version_current",
        "version",
        ["owner", "resource_id"],
        unique=True,
        sqlite_where=sa.text("to_seq IS NULL"),
        postgresql_where=sa.text("to_seq IS NULL"),
    )
    op.create_index(
        "uq_version_live_path",
        "version",
        ["owner", "path_key"],
        unique=True,
        sqlite_where=sa.text("to_seq IS NULL AND NOT removed"),
        postgresql_where=sa.text("to_seq IS NULL AND NOT removed"),
    )


def _create_approval() -> None:
    op.create_table(
        "approval",
        sa.Column("id", _BigInt, nullable=False),
        sa.Column("review_id", sa.String(), nullable=False),
        sa.Column("user_id", sa.String(), nullable=False),
        sa.Column("decision", sa.String(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("result_hash", sa.String(), nullable=False),
        sa.Column("at", _BigInt, nullable=False),
        sa.CheckConstraint("decision IN ('approved', 'rejected')", name=op.f("ck_approval_decision")),
        sa.ForeignKeyConstraint(["review_id"], ["review.id"], name=op.f("fk_approval_review_id_review")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name=op.f("fk_approval_user_id_user_account")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approval")),
    )
    op.create_index(op.f("ix_approval_review_id"), "approval", ["review_id"], unique=False)


def _create_draft_operation() -> None:
    op.create_table(
        "draft_operation",
        sa.Column("draft_id", sa.String(), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("installation_id", sa.String(), nullable=False),
        sa.Column("operation_id", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.CheckConstraint("ordinal >= 1", name=op.f("ck_draft_operation_ordinal")),
        sa.ForeignKeyConstraint(["draft_id"], ["draft.id"], name=op.f("fk_draft_operation_draft_id_draft")),
        sa.PrimaryKeyConstraint("draft_id", "ordinal", name=op.f("pk_draft_operation")),
        sa.UniqueConstraint(
            "installation_id", "operation_id", name=op.f("uq_draft_operation_installation_id_operation_id")
        ),
    )


def _create_review_comment() -> None:
    op.create_table(
        "review_comment",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("review_id", sa.String(), nullable=False),
        sa.Column("author_id", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("draft_id", sa.String(), nullable=True),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("resolved", sa.Boolean(), nullable=False),
        sa.Column("created_at", _BigInt, nullable=False),
        sa.ForeignKeyConstraint(
            ["author_id"], ["user_account.id"], name=op.f("fk_review_comment_author_id_user_account")
        ),
        sa.ForeignKeyConstraint(
            ["review_id"], ["review.id"], name=op.f("fk_review_comment_review_id_review")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review_comment")),
    )
    op.create_index(
        "ix_review_comment_order", "review_comment", ["review_id", "created_at", "id"], unique=False
    )


def _create_review_draft() -> None:
    op.create_table(
        "review_draft",
        sa.Column("review_id", sa.String(), nullable=False),
        sa.Column("draft_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["draft_id"], ["draft.id"], name=op.f("fk_review_draft_draft_id_draft")),
        sa.ForeignKeyConstraint(["review_id"], ["review.id"], name=op.f("fk_review_draft_review_id_review")),
        sa.PrimaryKeyConstraint("review_id", "draft_id", name=op.f("pk_review_draft")),
    )
    op.create_index(op.f("ix_review_draft_draft_id"), "review_draft", ["draft_id"], unique=False)
