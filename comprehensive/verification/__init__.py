"""Running what was generated against the serial elision: drivers in C, points, and comparison."""
