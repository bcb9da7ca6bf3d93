"""Constraint systems: Start, branches, points, solver, their text."""
