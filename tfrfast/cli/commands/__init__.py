"""A module for each subcommand, with `add_arguments` and `run`."""
