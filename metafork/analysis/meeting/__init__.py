"""May two accesses, at two points of an iteration space, name the same element?"""
