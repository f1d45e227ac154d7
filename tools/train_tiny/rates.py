"""Learning rates of both networks."""

from eaglebench.training.trainer import Rates

RATES = Rates(matrix=0.02, other=4e-3, warm_steps=20)
