"""Doors made for agents."""
