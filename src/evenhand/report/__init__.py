"""Draws what is in the tables of a run, and computes nothing: HTML, JSON, Markdown, a terminal summary."""
