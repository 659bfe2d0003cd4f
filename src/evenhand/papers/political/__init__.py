"""Political bias (Liu et al. 2021): its tables and Figure 2, on any model, with every mitigation there is."""
