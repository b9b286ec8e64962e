"""`python -m supremum` is the `supremum` command."""

from supremum.cli import main

if __name__ == "__main__":
    main()
