"""Turns values of any kind into the columns that the native encoder takes."""
