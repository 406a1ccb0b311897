"""One job: build, fit, evaluate, record."""
