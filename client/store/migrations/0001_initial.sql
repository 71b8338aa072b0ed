-- The first schema: account, Projects, published state, Drafts, outbox and what agents were shown.

CREATE TABLE account (
    id INTEGER NOT NULL,
    server_url VARCHAR NOT NULL,
    me TEXT NOT NULL,
    signed_out BOOLEAN NOT NULL,
    CONSTRAINT pk_account PRIMARY KEY (id),
    CONSTRAINT ck_account_one_row CHECK (id = 1)
);

CREATE TABLE activation_state (
    state_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    units BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    CONSTRAINT pk_activation_state PRIMARY KEY (state_id)
);

CREATE INDEX ix_activation_state_last_used_at ON activation_state (last_used_at);

CREATE INDEX ix_activation_state_project_id ON activation_state (project_id);

CREATE TABLE binding (
    directory VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT pk_binding PRIMARY KEY (directory)
);

CREATE TABLE blob (
    content_hash VARCHAR NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_blob PRIMARY KEY (content_hash)
);

CREATE TABLE meta (
    "key" VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    CONSTRAINT pk_meta PRIMARY KEY ("key")
);

CREATE TABLE project (
    project_id VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    role VARCHAR,
    access BOOLEAN NOT NULL,
    guide_path VARCHAR NOT NULL,
    installed_commit VARCHAR,
    installed_seq INTEGER NOT NULL,
    head_commit VARCHAR,
    head_seq INTEGER NOT NULL,
    snapshot_at INTEGER,
    last_success_at INTEGER,
    last_error VARCHAR,
    projection_version INTEGER NOT NULL,
    CONSTRAINT pk_project PRIMARY KEY (project_id)
);

CREATE TABLE retrieval_run (
    run_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    created_at INTEGER NOT NULL,
    "query" TEXT NOT NULL,
    index_revision VARCHAR NOT NULL,
    fragments INTEGER NOT NULL,
    latency_ms FLOAT NOT NULL,
    pinned BOOLEAN NOT NULL,
    trace BLOB NOT NULL,
    CONSTRAINT pk_retrieval_run PRIMARY KEY (run_id)
);

CREATE INDEX ix_retrieval_run_project_id_created_at ON retrieval_run (project_id, created_at);

CREATE TABLE sync_state (
    id INTEGER NOT NULL,
    epoch VARCHAR,
    cursor VARCHAR,
    last_round_at INTEGER,
    last_error TEXT,
    CONSTRAINT pk_sync_state PRIMARY KEY (id),
    CONSTRAINT ck_sync_state_one_row CHECK (id = 1)
);

CREATE TABLE draft (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    draft_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    resource_id VARCHAR NOT NULL,
    overlay BOOLEAN NOT NULL,
    status VARCHAR NOT NULL,
    base_commit VARCHAR,
    base TEXT NOT NULL,
    source_resource_id VARCHAR,
    source_commit_id VARCHAR,
    review_id VARCHAR,
    merged_commit VARCHAR,
    merged_seq INTEGER,
    reconciliation VARCHAR NOT NULL,
    conflicts VARCHAR NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CONSTRAINT uq_draft_draft_id UNIQUE (draft_id),
    CONSTRAINT ck_draft_scope CHECK (scope IN ('org', 'project')),
    CONSTRAINT ck_draft_status CHECK (status IN ('open', 'submitted', 'merged', 'discarded')),
    CONSTRAINT ck_draft_reconciliation CHECK (reconciliation IN ('unknown', 'clean', 'conflicts')),
    CONSTRAINT fk_draft_project_id_project FOREIGN KEY(project_id) REFERENCES project (project_id)
);

CREATE INDEX ix_draft_project_id_resource_id ON draft (project_id, resource_id);

CREATE INDEX ix_draft_project_id_status ON draft (project_id, status);

CREATE UNIQUE INDEX uq_draft_active ON draft (project_id, resource_id) WHERE status IN ('open', 'submitted');

CREATE TABLE published (
    project_id VARCHAR NOT NULL,
    resource_id VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    description TEXT NOT NULL,
    content_hash VARCHAR NOT NULL,
    source_resource_id VARCHAR,
    source_commit_id VARCHAR,
    CONSTRAINT pk_published PRIMARY KEY (project_id, resource_id),
    CONSTRAINT ck_published_scope CHECK (scope IN ('org', 'project')),
    CONSTRAINT fk_published_project_id_project FOREIGN KEY(project_id) REFERENCES project (project_id),
    CONSTRAINT fk_published_content_hash_blob FOREIGN KEY(content_hash) REFERENCES blob (content_hash)
);

CREATE INDEX ix_published_content_hash ON published (content_hash);

CREATE TABLE operation (
    operation_id VARCHAR NOT NULL,
    draft_id VARCHAR NOT NULL,
    ordinal INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    payload TEXT NOT NULL,
    fingerprint VARCHAR,
    answer TEXT,
    created_at INTEGER NOT NULL,
    CONSTRAINT pk_operation PRIMARY KEY (operation_id),
    CONSTRAINT uq_operation_draft_id_ordinal UNIQUE (draft_id, ordinal),
    CONSTRAINT fk_operation_draft_id_draft FOREIGN KEY(draft_id) REFERENCES draft (draft_id)
);

CREATE TABLE outbox (
    operation_id VARCHAR NOT NULL,
    draft_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    sync_status VARCHAR NOT NULL,
    attempts INTEGER NOT NULL,
    sent BOOLEAN NOT NULL,
    lease VARCHAR,
    lease_at INTEGER,
    next_attempt_at INTEGER,
    cause VARCHAR,
    error_code VARCHAR,
    error_message TEXT,
    retry_can_help BOOLEAN,
    streak INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CONSTRAINT pk_outbox PRIMARY KEY (operation_id),
    CONSTRAINT ck_outbox_sync_status CHECK (sync_status IN ('queued', 'syncing', 'retrying', 'synced', 'failed')),
    CONSTRAINT fk_outbox_operation_id_operation FOREIGN KEY(operation_id) REFERENCES operation (operation_id),
    CONSTRAINT fk_outbox_draft_id_draft FOREIGN KEY(draft_id) REFERENCES draft (draft_id)
);

CREATE INDEX ix_outbox_draft_id ON outbox (draft_id);

CREATE INDEX ix_outbox_project_id_sync_status ON outbox (project_id, sync_status);

CREATE INDEX ix_outbox_sync_status_next_attempt_at ON outbox (sync_status, next_attempt_at);
