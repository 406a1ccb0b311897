"""The ``emea`` command and its subcommands, one file each."""
