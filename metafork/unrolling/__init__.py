"""Several results per thread: iterations side by side, the loads that they share, vector accesses."""
