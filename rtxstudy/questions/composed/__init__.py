"""Does depth pay where the answer must be computed?"""
