"""What scans settle before they read: their columns in terms of Arrow, and their records."""
