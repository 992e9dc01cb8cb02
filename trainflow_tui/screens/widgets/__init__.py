"""Widgets: a frozen view model in, messages out, no input or output, no clock."""
