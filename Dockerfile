# docker build -t metafork .  &&  docker run --rm metafork
# The image has no GPU tools: kernels run on the processor.
FROM python:3.13-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends g++ gcc make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /metafork
COPY . .
RUN make .venv/.installed
ENV PATH="/metafork/.venv/bin:$PATH"
CMD ["make", "demo"]
