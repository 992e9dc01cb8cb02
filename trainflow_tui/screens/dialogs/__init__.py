"""Modal screens: each answers one question."""
