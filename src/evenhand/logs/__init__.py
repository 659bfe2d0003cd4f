"""Files other evaluation tools write, as tables of texts: samples of lm-eval, logs of Inspect."""
