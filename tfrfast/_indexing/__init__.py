"""How indexes are built, of files and of objects, and where they go."""
