"""The data set of real graphs: an index, graphs that load in milliseconds, and how it is built."""

from regal.data.entries import Entry, entry_named, load_graph, load_index

__all__ = ["Entry", "entry_named", "load_graph", "load_index"]
