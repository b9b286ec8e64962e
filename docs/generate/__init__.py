"""The generated part of the documentation: pages as pure functions of rule sets, departures and docstrings."""
