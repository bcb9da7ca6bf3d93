"""Functions of the file that a schedule calls: found and parsed where they are called, and put in line there."""
