"""BOLD (Dhamala et al. 2021): its tables, figures, tests and claims, on any model."""

from evenhand.papers.bold.replication import EXHIBITS, prepare

__all__ = ["EXHIBITS", "prepare"]
