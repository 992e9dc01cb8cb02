"""The capture API for kernel authors."""
