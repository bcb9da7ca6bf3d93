"""What the host code around schedules says: variables, effects, what it touches, what stays on the device."""
