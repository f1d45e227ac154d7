"""Learning rates of both networks."""

from eaglebench.training.recipe import TrainingRecipe

RATES = TrainingRecipe(matrix_rate=0.02, other_rate=4e-3, warm_updates=20)
