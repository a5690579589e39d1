"""Makes the dataset of a pipeline: graphs around the ops."""
