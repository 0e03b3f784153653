"""What do width, layers, passes, data and text length each buy?"""
