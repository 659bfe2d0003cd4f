"""Regard (Sheng et al. 2019): its tables, figures and claims, for any model and any human labels."""
