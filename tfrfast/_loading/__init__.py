"""What a Loader settles before it reads: what to decode, and whether it knows its share."""
