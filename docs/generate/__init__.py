"""What the documentation computes: each page is a pure function of the rule sets, the departures and the docstrings."""
