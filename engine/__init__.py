"""The instrumented engine: the only rooms that import torch."""
