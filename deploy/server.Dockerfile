# The registry and compiler as a service. Build from the repository's root:
#   docker build -f deploy/server.Dockerfile -t maskwright-server .
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY pyproject.toml README.md LICENSE ./
COPY proto proto
COPY compiler compiler
COPY registry registry
COPY workers workers
RUN python -m venv /opt/maskwright && /opt/maskwright/bin/pip install '.[server]'

FROM python:3.12-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /var/lib/maskwright --create-home maskwright
COPY --from=build /opt/maskwright /opt/maskwright
# numba keeps compiled kernels there; the root file system may be read-only.
ENV PATH=/opt/maskwright/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/lib/maskwright/numba
USER 10001
VOLUME /var/lib/maskwright
EXPOSE 7411 9464
# SIGTERM drains. Probes are gRPC's own health service.
ENTRYPOINT ["maskwright", "serve"]
CMD ["--config", "/etc/maskwright/server.toml"]
