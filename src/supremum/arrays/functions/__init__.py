"""The functions of the namespaces. Each returns an array of a library and its key."""
