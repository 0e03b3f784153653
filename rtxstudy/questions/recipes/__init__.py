"""Which recipe suits each encoder?"""
