"""How each op of a row runs on a batch of rows. An op without a rule here never does."""
