"""Can a text leave a loop early, at a bounded risk?"""
