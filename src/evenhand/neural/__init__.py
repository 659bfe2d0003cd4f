"""Load weights, tokenise, run length-sorted forward passes: what models and classifiers share."""
