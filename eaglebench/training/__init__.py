"""Makes a draft head for a target from nothing but the target."""
