"""Schedules by hand: directives, each a function from a program to one with the same meaning, or a refusal."""
