"""Nodes: one POSIX script to sections, sections and tool outputs to devices, signals and a status."""
