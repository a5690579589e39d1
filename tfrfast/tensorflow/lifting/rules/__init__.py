"""The rules by which ops on a row run on a batch of rows. An op without a rule never does so."""
