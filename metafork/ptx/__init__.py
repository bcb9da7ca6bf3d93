"""PTX as a language: parse, print, emulate symbolically, replace loads by warp shuffles, and run on NumPy lanes.

The pipeline, one module an idea: ``lexer`` → ``parser`` → ``syntax`` (frozen) → ``printer``; ``flatten`` and ``cfg``
give the control flow; ``terms`` and ``evaluate`` the symbolic values; ``emulator`` walks the paths and leaves memory
traces (``traces``); ``detection`` proves shuffle deltas; ``synthesis`` writes the new code; ``shuffle`` is the
entry.  ``interpreter`` runs PTX.  The method follows PTXASW (Matsumura, Garcia De Gonzalo, Peña, CC 2023).
"""
