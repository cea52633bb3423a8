"""What a run says about itself: the trace's schema, its files, and the sensors that add to it."""
