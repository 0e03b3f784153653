"""Which form of the loop learns best?"""
