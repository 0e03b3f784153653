"""Recurrent and standard transformers for text classification: models, data, training and runs."""
