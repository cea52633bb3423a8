"""The instrumented engine: the only rooms that import torch.

PyTorch's threads wait for each other by spinning. GNU OpenMP spins for milliseconds by default, so as soon as anything
else wants a core (a browser drawing the page, say) each of a step's few hundred products waits for a thread that was
moved aside by a spinning one, and a step takes ten times as long. Spinning for some microseconds keeps the speed of a
machine that is alone and most of it on one that is not. It is set here because the library reads it as it is loaded.
"""

from __future__ import annotations

import os

os.environ.setdefault("GOMP_SPINCOUNT", "10000")
