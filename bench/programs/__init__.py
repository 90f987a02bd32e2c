"""Programs as users write them, run on the pool, joblib and Dask: `make programs`."""
