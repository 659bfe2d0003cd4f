"""Text generation: engines, caches, decoders, sampling and scheduling."""
