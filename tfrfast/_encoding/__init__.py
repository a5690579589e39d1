"""From values of any kind to the columns that the native encoder takes."""
