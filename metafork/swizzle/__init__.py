"""Swizzle synthesis: complete a data-movement sketch so that it meets its specification, and print it as code.

A sketch is a straight-line program over arrays of constant shape with holes for data movements (Swizzle Inventor,
sections 3 to 6; Swizzleflow, sections 2 to 4).  Text (``parser``) or calls (``sketch``) become a ``Problem``;
``search`` finds its solutions, ``cost`` ranks them, the printers write them as CUDA, C or JSON.  ``banks`` stands
alone: bank conflicts of shared memory, and layouts of a tile that avoid them.
"""
