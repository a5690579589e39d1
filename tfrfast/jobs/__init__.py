"""Work on whole data sets: the parts of a job, the running of parts, and a file for each job."""
