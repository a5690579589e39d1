"""What differs between two data sets."""
