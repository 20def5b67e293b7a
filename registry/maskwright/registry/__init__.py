"""The registry: blob stores, index, gRPC services, server, and the command line.

Layers, each knowing only those below it:

    cli, demo        what people type
    lab              the page that shows a constraint at work
    precompile       manifests and lock files, through a server or here
    service          gRPC: messages in and out, errors to status in one place
    security         callers, tokens, certificates, quotas
    compiling        single-flight, bounded queue, killed-on-limit child processes
    collect          retention and garbage collection
    names            the journal: names, versions, channels, revocations, tokens
    catalog          artifacts, refusals, tokenizers and request results by key
    content, index   content-addressed blobs and checksummed records; SQLite as a cache of them
    store            bytes under keys: a local folder, or S3
"""

DEFAULT_ADDRESS = "127.0.0.1:7411"
DEFAULT_LAB_ADDRESS = "127.0.0.1:7412"
