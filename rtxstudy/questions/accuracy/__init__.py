"""Is the recurrent encoder as accurate as the standard one, and what does it cost?"""
