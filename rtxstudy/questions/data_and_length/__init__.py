"""How many texts does each encoder need, and how does it read short, long and longer texts?"""
