"""Do predictions rank plans as the real runtime does?"""
