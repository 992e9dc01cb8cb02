"""Decided facts: an append-only chain of events in SQLite, with the current state beside it."""
