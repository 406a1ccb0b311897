# docker build -t emea .
# docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" emea align source.ttl target.csv
#
# Without a GPU, PIP_ARGS can name the index of PyTorch's CPU version: --build-arg PIP_ARGS="..."
FROM python:3.12-slim
ARG PIP_ARGS=""

# --user may name someone without a home folder, so all caches are in /tmp
ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1 HOME=/tmp NUMBA_CACHE_DIR=/tmp/numba

# The dependencies are a layer of their own: a change of the code does not install them again.
WORKDIR /emea
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
    > requirements.txt \
    && pip install $PIP_ARGS -c constraints.txt -r requirements.txt

COPY README.md LICENSE ./
COPY conf conf
COPY emea emea
RUN pip install --no-deps .
COPY docs/examples examples

# Mount your folder here. Without a mount, any user may write to it.
RUN useradd --create-home user && mkdir /work && chmod 1777 /work
WORKDIR /work
USER user

ENTRYPOINT ["emea"]
# The first run of the README, into the folder alignment
CMD ["align", "/emea/examples/atlas.nt", "/emea/examples/karte.ttl", "--links", "/emea/examples/seeds.tsv"]
