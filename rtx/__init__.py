"""The command ``rtx`` and its parts: classifiers, embeddings, exports, shards of large files, and where trainings run."""
