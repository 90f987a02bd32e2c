"""Programs as users write them, run on the pool and beside it on joblib and Dask: `make programs`."""
