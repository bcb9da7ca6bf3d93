"""Structures that functions are given: their members as parameters of schedules."""
