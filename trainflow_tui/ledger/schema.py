"""The tables of the ledger and how a file of an older schema becomes this one."""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION: Final = 2

EVENTS: Final = """
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  entity TEXT NOT NULL,
  at TEXT NOT NULL,
  actor TEXT NOT NULL,
  payload TEXT NOT NULL,
  prev TEXT NOT NULL,
  hash TEXT NOT NULL
);
CREATE INDEX event_entity ON event (entity, seq);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO head VALUES (1, 0, '');
"""

PROJECTIONS: Final = """
CREATE TABLE task (
  id TEXT PRIMARY KEY, title TEXT NOT NULL, objective TEXT NOT NULL, mode TEXT NOT NULL, state TEXT NOT NULL,
  resume_state TEXT, reason TEXT NOT NULL DEFAULT '', created_at TEXT NOT NULL, moved_at TEXT NOT NULL,
  latest_word TEXT NOT NULL DEFAULT '', latest_at TEXT NOT NULL
);
CREATE TABLE report (
  id TEXT PRIMARY KEY, task TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, summary TEXT NOT NULL,
  executed INTEGER, evidence TEXT NOT NULL, at TEXT NOT NULL, by TEXT NOT NULL
);
CREATE INDEX report_task ON report (task, kind, at);
CREATE TABLE guidance (
  task TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL,
  anchor TEXT NOT NULL, version INTEGER NOT NULL, source TEXT NOT NULL, provisional INTEGER NOT NULL,
  collected_at TEXT NOT NULL, first_at TEXT NOT NULL, removed_at TEXT, by TEXT NOT NULL,
  PRIMARY KEY (task, id)
);
CREATE TABLE receipt (
  seq INTEGER PRIMARY KEY, task TEXT NOT NULL, item TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL,
  note TEXT NOT NULL, at TEXT NOT NULL, by TEXT NOT NULL
);
CREATE INDEX receipt_item ON receipt (task, item, seq);
CREATE TABLE question (
  task TEXT NOT NULL, id TEXT NOT NULL, direction TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL,
  blocking INTEGER NOT NULL, state TEXT NOT NULL, version TEXT NOT NULL, asked_at TEXT NOT NULL, by TEXT NOT NULL,
  answer TEXT, answered_at TEXT, answered_by TEXT, position INTEGER NOT NULL DEFAULT 0, provisional INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task, id)
);
CREATE TABLE approval (
  id TEXT PRIMARY KEY, task TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
  request TEXT NOT NULL, digest TEXT NOT NULL, requested_at TEXT NOT NULL, expires_at TEXT, start_before TEXT,
  decision TEXT, decided_at TEXT, start_token TEXT, consumed_at TEXT
);
CREATE INDEX approval_state ON approval (state, requested_at);
CREATE TABLE run (
  id TEXT PRIMARY KEY, task TEXT NOT NULL, path TEXT NOT NULL, framework TEXT NOT NULL, added_at TEXT NOT NULL
);
CREATE TABLE trace (
  id TEXT PRIMARY KEY, task TEXT NOT NULL, path TEXT NOT NULL, sha256 TEXT NOT NULL, added_at TEXT NOT NULL,
  summary TEXT NOT NULL
);
CREATE TABLE node (
  name TEXT PRIMARY KEY, target TEXT NOT NULL, added_at TEXT NOT NULL
);
"""

PLAIN: Final = """
CREATE TABLE human_file (
  task TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, last TEXT NOT NULL DEFAULT '',
  sha256 TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '', scanned_at TEXT NOT NULL,
  hints TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (task, name)
);
CREATE TABLE lease (
  name TEXT PRIMARY KEY, owner TEXT NOT NULL, token INTEGER NOT NULL, expires_at TEXT NOT NULL, heartbeat_at TEXT NOT NULL
);
CREATE TABLE segment (
  id INTEGER PRIMARY KEY, run TEXT NOT NULL, path TEXT NOT NULL UNIQUE, state TEXT NOT NULL, rows INTEGER,
  first_at TEXT, last_at TEXT, created_at TEXT NOT NULL, dropped_at TEXT
);
CREATE INDEX segment_run ON segment (run, state);
CREATE TABLE run_status (
  run TEXT PRIMARY KEY, tail TEXT NOT NULL, summary TEXT NOT NULL, updated_at TEXT NOT NULL
);
CREATE TABLE node_status (name TEXT PRIMARY KEY, status TEXT NOT NULL, checked_at TEXT NOT NULL);
CREATE TABLE pulse (topic TEXT PRIMARY KEY, n INTEGER NOT NULL, at TEXT NOT NULL, detail TEXT NOT NULL DEFAULT '');
"""

PROJECTION_TABLES: Final = (
    "task",
    "report",
    "guidance",
    "receipt",
    "question",
    "approval",
    "run",
    "trace",
    "node",
)

NODE_HISTORY: Final = """
CREATE TABLE node_history (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, at TEXT NOT NULL, status TEXT NOT NULL
);
CREATE INDEX node_history_name ON node_history (name, id);
"""

MIGRATIONS: Final[tuple[str, ...]] = (EVENTS + PROJECTIONS + PLAIN, NODE_HISTORY)
"""Script N brings a file of version N to version N+1. A released script, and what it is made of, is never edited: a table that
changes gets a text of its own."""

PAST: Final = PROJECTIONS + PLAIN + NODE_HISTORY
"""Every table but the events, empty: what `Past` fills."""
