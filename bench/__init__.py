"""Benchmarks: each prints ratios taken in one run. `make bench` runs them all; docs/measured.md keeps the figures."""
