"""Shards that are written apart, by whoever, and published together."""
