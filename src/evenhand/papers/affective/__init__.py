"""Affective bias (Kadan et al. 2024): Tables 2 to 9, Figures 2 and 3, and the summaries of 5.1 and 5.4."""
