"""Ways to run requests, found by name."""
