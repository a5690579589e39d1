"""Lifts the parse out of functions, whose rest becomes a function of whole columns."""
