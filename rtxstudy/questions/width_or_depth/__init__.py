"""Is it recurrence that saves, or only the narrower state, and does depth pay on the headline data?"""
