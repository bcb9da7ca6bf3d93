"""Strategies: each module maps a program to a program with the same meaning."""
