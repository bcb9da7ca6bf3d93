"""Back ends: what is said about a kind of device, each in one module (``target.Target`` is what it has to say)."""
