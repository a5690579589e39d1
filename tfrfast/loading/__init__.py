"""The Loader, its preparation, and the parts that adapters to frameworks share."""
