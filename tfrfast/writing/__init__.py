"""Writers, their options, and how what is written gets its name, or none."""
