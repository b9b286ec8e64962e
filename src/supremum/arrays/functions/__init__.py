"""The functions of the namespaces, each of which returns an array of a library and its key."""
