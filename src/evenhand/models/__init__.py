"""Back-ends that continue texts; the local ones share the sampling loop of `generation.scheduler`."""
