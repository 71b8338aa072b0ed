-- Evaluation cases, their versions, and the frozen corpora that they are replayed over.

CREATE TABLE evaluation_body (
    content_hash VARCHAR NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT pk_evaluation_body PRIMARY KEY (content_hash)
);

CREATE TABLE evaluation_case (
    case_id VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    "query" TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT pk_evaluation_case PRIMARY KEY (case_id)
);

CREATE INDEX ix_evaluation_case_project_id ON evaluation_case (project_id);

CREATE TABLE evaluation_corpus (
    seq INTEGER NOT NULL,
    memory_hash VARCHAR NOT NULL,
    project_id VARCHAR NOT NULL,
    commit_id VARCHAR,
    documents INTEGER NOT NULL,
    digest VARCHAR NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT pk_evaluation_corpus PRIMARY KEY (seq),
    CONSTRAINT uq_evaluation_corpus_memory_hash UNIQUE (memory_hash)
);

CREATE INDEX ix_evaluation_corpus_project_id ON evaluation_corpus (project_id);

CREATE TABLE evaluation_document (
    seq INTEGER NOT NULL,
    digest VARCHAR NOT NULL,
    resource_id VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    path VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    description TEXT NOT NULL,
    content_hash VARCHAR NOT NULL,
    provenance VARCHAR NOT NULL,
    source_resource_id VARCHAR,
    source_commit_id VARCHAR,
    draft_id VARCHAR,
    draft_freshness VARCHAR,
    draft_reconciliation VARCHAR,
    CONSTRAINT pk_evaluation_document PRIMARY KEY (seq),
    CONSTRAINT uq_evaluation_document_digest UNIQUE (digest),
    CONSTRAINT fk_evaluation_document_content_hash_evaluation_body FOREIGN KEY(content_hash) REFERENCES evaluation_body (content_hash)
);

CREATE INDEX ix_evaluation_document_content_hash ON evaluation_document (content_hash);

CREATE TABLE evaluation_version (
    case_id VARCHAR NOT NULL,
    version INTEGER NOT NULL,
    corpus INTEGER NOT NULL,
    run_id VARCHAR NOT NULL,
    run_pinned BOOLEAN NOT NULL,
    judgment TEXT NOT NULL,
    note TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT pk_evaluation_version PRIMARY KEY (case_id, version),
    CONSTRAINT fk_evaluation_version_case_id_evaluation_case FOREIGN KEY(case_id) REFERENCES evaluation_case (case_id),
    CONSTRAINT fk_evaluation_version_corpus_evaluation_corpus FOREIGN KEY(corpus) REFERENCES evaluation_corpus (seq)
);

CREATE INDEX ix_evaluation_version_corpus ON evaluation_version (corpus);

CREATE INDEX ix_evaluation_version_run_id ON evaluation_version (run_id);

CREATE TABLE evaluation_member (
    corpus INTEGER NOT NULL,
    document INTEGER NOT NULL,
    CONSTRAINT pk_evaluation_member PRIMARY KEY (corpus, document),
    CONSTRAINT fk_evaluation_member_corpus_evaluation_corpus FOREIGN KEY(corpus) REFERENCES evaluation_corpus (seq),
    CONSTRAINT fk_evaluation_member_document_evaluation_document FOREIGN KEY(document) REFERENCES evaluation_document (seq)
) WITHOUT ROWID;

CREATE INDEX ix_evaluation_member_document ON evaluation_member (document);
