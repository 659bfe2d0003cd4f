"""A metric and a suite for evenhand, to be copied and changed."""
