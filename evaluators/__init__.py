"""Counters: each module maps a program to a symbolic value (DESIGN: evaluators)."""
