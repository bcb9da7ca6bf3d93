"""Verification of finished trees: guards proved, every leaf run against the serial elision (``metafork verify``)."""

from __future__ import annotations

from comprehensive.building.commands import BuildError
from comprehensive.verification.builds import plain_code
from comprehensive.verification.engine import Options, verify
from comprehensive.verification.result import Failure, VariantResult, Verification

__all__ = ["BuildError", "Failure", "Options", "VariantResult", "Verification", "plain_code", "verify"]
