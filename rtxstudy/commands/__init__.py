"""The commands that this package adds to ``rtx``, through the entry points of pyproject.toml."""
