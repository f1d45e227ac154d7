"""The vocabulary every package shares: records and protocols, standard library only."""
