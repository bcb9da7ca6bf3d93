"""Preprocessing: directives, included files, macros; what is left are tokens with their places."""
