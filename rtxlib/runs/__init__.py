"""What a run is, how runs are trained, and where they are kept."""
