# docker build -t capbias . && docker run --read-only --tmpfs /tmp -p 127.0.0.1:8501:8501 -v capbias:/data capbias
ARG BASE=python:3.11-slim
FROM ${BASE}
# Java for METEOR and the PTB tokenizer, Chromium for charts as SVG, PNG and PDF.
RUN apt-get update && apt-get install -y --no-install-recommends chromium default-jre-headless \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
# What changes seldom comes first, so that a change of the code installs nothing anew.
COPY requirements-build.txt requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements-build.txt \
  && uv pip install --system --no-cache --require-hashes -r requirements.txt
COPY . .
RUN uv pip install --system --no-cache --no-deps --no-build-isolation .
# Writes in /data, and what is passing in /tmp, and nowhere else.
RUN useradd --uid 1000 --home-dir /tmp --no-create-home capbias && mkdir /data && chown capbias:capbias /data
USER capbias
ENV CAPBIAS_HOME=/data CAPBIAS_DEMO=1 HOME=/tmp PYTHONDONTWRITEBYTECODE=1
VOLUME /data
EXPOSE 8501
HEALTHCHECK CMD python -c "import urllib.request as u; u.urlopen('http://localhost:8501/_stcore/health')"
# Within the container every address is its own; who reaches it is said by `docker run -p`.
CMD ["capbias", "app", "--address", "0.0.0.0", "--insecure"]
