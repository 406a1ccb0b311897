"""One run: built, trained, evaluated and recorded."""
