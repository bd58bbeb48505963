"""The open data set: graphs of real architectures, without weights."""
