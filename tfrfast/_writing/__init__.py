"""Options that the writers share, and compressed files that grow."""
