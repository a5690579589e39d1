"""The Loader, what it settles before it reads, and what adapters to frameworks share."""
