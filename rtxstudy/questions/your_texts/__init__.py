"""Which model for somebody's own texts?"""
