"""The process that runs task code. It knows neither the master nor any token."""
