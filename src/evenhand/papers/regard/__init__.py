"""Regard (Sheng et al. 2019): its tables, figures and claims, on any model and anybody's labels."""

from evenhand.papers.regard.replication import EXHIBITS, prepare

__all__ = ["EXHIBITS", "prepare"]
