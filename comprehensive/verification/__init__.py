"""Verification of finished trees: guards proved, every leaf run against the serial elision (``metafork verify``)."""

from __future__ import annotations

from metafork.comprehensive.building.commands import BuildError
from metafork.comprehensive.verification.builds import plain_code
from metafork.comprehensive.verification.engine import Options, verify
from metafork.comprehensive.verification.result import Failure, VariantResult, Verification

__all__ = ["BuildError", "Failure", "Options", "VariantResult", "Verification", "plain_code", "verify"]
