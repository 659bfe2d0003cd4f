"""Human labels: studies, the web app that collects answers, and where answers are kept."""
