"""From what a user asked for to suites, prompts and cells."""
