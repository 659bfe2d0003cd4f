"""Political bias (Liu et al. 2021): its tables and Figure 2, for any model and every available mitigation."""
