"""Pure functions from records to estimates."""
