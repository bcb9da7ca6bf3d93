"""What a block keeps in shared memory and registers: windows, private elements, structures, layouts."""
