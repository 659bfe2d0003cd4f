"""BOLD (Dhamala et al. 2021): its tables, figures, tests and claims, for any model."""
