"""The gRPC services: messages in and out. What they do is in `compiling` and `catalog`."""
