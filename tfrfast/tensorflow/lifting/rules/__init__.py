"""The rules by which ops of a row run on a batch of rows. An op without a rule never does."""
