"""What Loaders settle before they read, and what adapters to other frameworks share."""
