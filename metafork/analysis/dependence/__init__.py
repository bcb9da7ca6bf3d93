"""The dependence test: may two references, in two instances of the loops around them, name one element?"""
