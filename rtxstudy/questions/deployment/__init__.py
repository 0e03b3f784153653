"""Which model is worth its cost?"""
