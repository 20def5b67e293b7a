# A base for inference workers: the runtime and the client, with numpy, grpcio and protobuf, and no compiler. Build
# from the repository's root; give an engine's image as BASE to add the runtime to it:
#   docker build -f deploy/worker.Dockerfile --build-arg BASE=vllm/vllm-openai:v0.11.0 -t my-worker .
ARG BASE=python:3.12-slim-bookworm

FROM python:3.12-slim-bookworm AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY pyproject.toml README.md LICENSE ./
COPY proto proto
COPY compiler compiler
COPY registry registry
COPY workers workers
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM ${BASE}
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels python3 -m pip install /wheels/*.whl
# Artifacts and packs, verified at each use; share it between the processes of a host.
ENV MASKWRIGHT_CACHE=/var/cache/maskwright
VOLUME /var/cache/maskwright
