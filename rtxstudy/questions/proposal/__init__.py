"""What does the proposal claim, and what is measured of it?"""
