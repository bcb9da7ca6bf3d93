"""The register estimate: how ptxas would allocate the registers of a kernel."""
