"""The data set of real graphs: an index, graphs that load in milliseconds, and how it is built."""

from regal.data.entries import Entry, load_graph, load_index

__all__ = ["Entry", "load_graph", "load_index"]
