"""Training of the tiny pair."""
