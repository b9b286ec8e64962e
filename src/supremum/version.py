"""The version of Supremum, for code that must not import the whole package."""

__version__ = "0.2.0"
