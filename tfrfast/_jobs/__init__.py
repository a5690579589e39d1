"""Jobs as pure splits: what a part of a job is, how parts are cut, and who runs them."""
