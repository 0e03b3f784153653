"""What did the study find, and what does it not say?"""
