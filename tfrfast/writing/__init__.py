"""Writers, their options, and the publication of complete files."""
