"""Records as tables: scans, Parquet, conditions in SQL and statistics."""
