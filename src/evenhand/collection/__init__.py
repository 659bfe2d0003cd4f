"""Collects prompts from pages, as BOLD was collected from Wikipedia."""
