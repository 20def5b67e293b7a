"""Who calls, and what they may do."""

from .callers import ANONYMOUS, SCOPES, Caller, current_caller, using_caller

__all__ = ["ANONYMOUS", "SCOPES", "Caller", "current_caller", "using_caller"]
