"""Updates a finished run after its graphs have changed."""
