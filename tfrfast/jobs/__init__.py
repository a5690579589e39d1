"""Work on whole data sets: what a part of a job is, who runs parts, and a file for each job."""
