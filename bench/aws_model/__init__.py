"""The real master and the real agents on modelled AWS services, in simulated time: what a large deployment reaches."""
