"""The parse of a map function runs ahead of the rest of it, for many records at once."""
