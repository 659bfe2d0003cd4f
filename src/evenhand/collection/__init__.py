"""Collects prompts from pages, as BOLD did from Wikipedia."""
