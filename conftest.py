"""What the doctests of the sources need that is not installed everywhere."""

from importlib.util import find_spec

# PyTorch is no dependency; continuous integration installs it.
collect_ignore = [] if find_spec("torch") else ["src/supremum/arrays/backends/torch.py"]
# Sphinx's settings, and pages that are made of what is tested where it lies.
collect_ignore += ["docs/conf.py", "docs/generated"]
