"""The instrumented engine: the only rooms that import torch.

PyTorch's threads wait for each other by spinning. GNU OpenMP spins for milliseconds by default, so as soon as anything
else wants a core (a browser drawing the page, say) each of a step's few hundred products waits for a thread that was
moved aside by a spinning one, and a step takes ten times as long. Spinning for some microseconds keeps the speed of a
machine that is alone and most of it on one that is not.

Weights are read once a token, page after page: 2 MiB pages, where the system gives them on request, spare most of the
address look-ups. Both are set here because the libraries read them as they are loaded; a person's own setting wins.
"""

from __future__ import annotations

import os

os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
