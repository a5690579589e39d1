"""Plans: the division of a chain's calls between tfrfast and TensorFlow."""
