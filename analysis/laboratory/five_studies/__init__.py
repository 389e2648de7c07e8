"""The same five studies by Optuna's default, its Gaussian process, and ours."""
