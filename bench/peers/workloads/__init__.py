"""What the rows run. Each workload starts an engine, measures, and returns figures by their names."""
