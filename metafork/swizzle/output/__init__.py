"""Solutions as code: lowering, cost, printers, pictures."""
