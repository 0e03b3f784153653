"""Where does the gradient arrive in a loop?"""
