# An S3 service to try the registry with: ministack, which honours If-None-Match and If-Match.
FROM python:3.12-slim-bookworm
RUN pip install --no-cache-dir --disable-pip-version-check "ministack==1.4.21" \
    && useradd --system --uid 10001 ministack \
    && install -d -o ministack /data
USER 10001
EXPOSE 4566
HEALTHCHECK CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:4566/_ministack/health')"]
CMD ["ministack"]
