"""Where does depth pay, and does a loop replace it?"""
