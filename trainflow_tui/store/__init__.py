"""Measured facts: Parquet segments and JSONL tails queried through DuckDB."""
