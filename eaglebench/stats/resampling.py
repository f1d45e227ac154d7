"""How often samples are drawn again, and from which seed: the same data give the same verdict."""

RESAMPLES = 9999
SEED = 20260101
