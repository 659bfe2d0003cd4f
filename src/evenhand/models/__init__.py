"""Back-ends that continue texts; decoding.py is the one sampling loop of the local ones."""
