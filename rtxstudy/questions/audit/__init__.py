"""Can the data be trusted?"""
