"""JSON Schema to byte automaton.

compile_schema(source, options, limits, library, deadline) -> SchemaResult
library_frames(whitespace_bound) -> frames by name, for a vocabulary pack
json_follows(automaton) -> whether its calls of the library stand where JSON goes on
followed_by(library) -> what may follow the library's returns, where not everything may
"""

from maskwright.compiler.schema.front import SchemaResult, compile_schema
from maskwright.compiler.schema.library import followed_by, json_follows, library_frames

__all__ = ["SchemaResult", "compile_schema", "followed_by", "json_follows", "library_frames"]
