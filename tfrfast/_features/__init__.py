"""From the specs that users give to columns: inferred, checked, compiled, assembled."""
