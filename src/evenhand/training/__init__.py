"""Train language models, classifiers, norms and embeddings; write a checkpoint and its card."""
