"""JSON Schema to byte automaton.

compile_schema(source, options, limits, library, deadline) -> SchemaResult
library_frames(whitespace_bound) -> frames by name, for a vocabulary pack
returns_inside_strings(library) -> the library's returns that lead into a string
"""

from maskwright.compiler.schema.front import SchemaResult, compile_schema
from maskwright.compiler.schema.library import library_frames, returns_inside_strings

__all__ = ["SchemaResult", "compile_schema", "library_frames", "returns_inside_strings"]
