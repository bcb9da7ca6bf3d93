"""PTX as a language: parse, print, emulate symbolically, replace loads by warp shuffles, and run on NumPy lanes.

``text`` reads and prints (``lexer`` → ``parser`` → ``syntax``, frozen → ``printer``; ``flatten`` and ``cfg`` give the
control flow); ``emulation`` walks the paths with symbolic values (``terms``, ``evaluate``) and leaves memory traces
(``emulator``, ``traces``); ``shuffles`` proves shuffle deltas (``detection``) and writes the new code (``synthesis``;
``shuffle`` is the entry).  ``interpreter`` runs PTX.  The method follows PTXASW (Matsumura, Garcia De Gonzalo, Peña,
CC 2023).
"""
