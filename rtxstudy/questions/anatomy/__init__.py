"""What is an encoder made of?"""
