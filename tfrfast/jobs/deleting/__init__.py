"""Deletes records: a journal, and new shards in the places of the old ones."""
