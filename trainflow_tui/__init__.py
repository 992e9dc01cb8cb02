"""The terminal screen from which people run large-model training. Nothing is imported here: every door loads what it needs."""

__version__ = "0.1.0"
