"""For plug-in authors and for us: a stub model and contract checks. Nothing in evenhand imports it."""
