"""The registry: blob stores, index, gRPC services, server, and the command line.

Layers, each knowing only those below it:

    cli, demo        what people type
    service          gRPC: messages in and out, errors to status in one place
    compiling        single-flight, bounded queue, killed-on-limit child processes
    catalog          artifacts, refusals, tokenizers and request results by name
    content, index   content-addressed blobs and checksummed records; SQLite as a cache of them
    store            bytes under keys: a local folder
"""

DEFAULT_ADDRESS = "127.0.0.1:7411"
