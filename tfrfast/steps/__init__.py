"""Steps of episodes as records: the step file, its building, and the reader."""
