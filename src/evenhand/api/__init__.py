"""The public functions, one file a verb. The command line and ``import evenhand`` both call these."""
