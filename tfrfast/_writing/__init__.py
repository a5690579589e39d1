"""What the writers are made of."""
