"""The study: what the notebooks call to run, compare, draw and report."""
