"""What an encoder must beat: counting words, NB-SVM and a bag of embeddings."""
