"""The command ``rtx`` and what it is made of: classifiers, exports, shards of large files, and where trainings run."""
