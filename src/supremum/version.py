"""The version of Supremum, for those who must not import the front door."""

__version__ = "0.1.0"
