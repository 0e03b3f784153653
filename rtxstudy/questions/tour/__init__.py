"""What does each part of an encoder do?"""
