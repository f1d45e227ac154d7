"""From snapshots and a policy to verdicts; pure functions."""
