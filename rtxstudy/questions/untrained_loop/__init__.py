"""Does a window of a trained encoder gain by being passed again, with nothing trained?"""
