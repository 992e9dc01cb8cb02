"""Measurements beside their budgets. Prints; decides nothing."""
