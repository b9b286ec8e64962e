"""The functions of the namespaces, each of which returns an array of a library and its key.

A library's own function does the work wherever it has one.
"""
