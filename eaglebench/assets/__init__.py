"""Models and prompts that can be fetched, verified and converted."""
