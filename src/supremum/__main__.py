"""`python -m supremum` is the `supremum` command."""

from supremum.cli import main

main()
