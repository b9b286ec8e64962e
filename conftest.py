"""What the doctests of the sources need that is not installed everywhere."""

from importlib.util import find_spec

# PyTorch is no dependency; continuous integration installs it.
collect_ignore = [] if find_spec("torch") else ["src/supremum/arrays/backends/torch.py"]
