"""Prompt sets, each with data and a card; code only where data must be expanded."""
