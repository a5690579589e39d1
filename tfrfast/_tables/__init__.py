"""Tables for the command line: conditions, Parquet, statistics."""
