"""JSON Schema to byte automaton.

compile_schema(source, options, limits, library, deadline) -> SchemaResult
library_frames(whitespace_bound) -> frames by name, for a vocabulary pack
followed_by(library) -> what may follow the library's returns, where not everything may
"""

from maskwright.compiler.schema.front import SchemaResult, compile_schema
from maskwright.compiler.schema.library import followed_by, library_frames

__all__ = ["SchemaResult", "compile_schema", "followed_by", "library_frames"]
