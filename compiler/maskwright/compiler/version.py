"""The compiler's version: part of every artifact's key.

It changes whenever the same input may give other bytes, so that caches and registries never mix two compilers' work.
"""

COMPILER_VERSION = "0.1.0"
