"""Prompt sets: data and a card each; code only where data must be expanded."""
