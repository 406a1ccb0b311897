# docker build -t emea . && docker run --rm -v "$PWD/results:/results" emea
# Without a GPU, PIP_ARGS can name the index of PyTorch's CPU version: --build-arg PIP_ARGS="..."
FROM python:3.12-slim
ARG PIP_ARGS=""
ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/numba

WORKDIR /emea
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY conf conf
COPY emea emea
RUN pip install $PIP_ARGS -c constraints.txt .

COPY docs/examples docs/examples
RUN useradd --create-home user && mkdir /results && chown user /results
USER user
VOLUME /results

# The first run of the README. Other commands: docker run --rm -v ... emea emea --help
CMD ["emea", "align", "docs/examples/atlas.nt", "docs/examples/karte.ttl", "--links", "docs/examples/seeds.tsv", "--out", "/results/alignment"]
