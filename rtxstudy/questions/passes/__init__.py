"""What does each pass do, and how many are needed?"""
