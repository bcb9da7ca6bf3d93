"""Words beside C's own: keywords, and what stands in atomic updates, reductions and static clauses."""
