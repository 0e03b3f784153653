"""Comparisons of speed with other libraries. What is measured runs in a tuned process, as under ``rtx``."""

from rtx.process import tune

tune()  # before a module of this package loads torch
