"""Regard (Sheng et al. 2019): its tables, figures and claims, on any model and anybody's labels."""
