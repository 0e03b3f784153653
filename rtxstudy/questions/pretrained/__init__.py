"""What does pretraining give an encoder?"""
