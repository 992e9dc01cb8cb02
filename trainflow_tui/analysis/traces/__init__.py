"""Profiler traces: reading, the time split, hot-spots."""
