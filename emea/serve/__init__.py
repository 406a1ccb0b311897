"""A finished run as a local service: reconciliation of tables, and decisions about matches."""
