"""An sm_80 on the CPU: host code runs as it is, kernels run as SASS, and what they do is counted (see README.md)."""

from rig.device import Device, Launch, Module
from rig.tools import MissingToolError, missing_tools

__all__ = ["Device", "Launch", "MissingToolError", "Module", "missing_tools"]
