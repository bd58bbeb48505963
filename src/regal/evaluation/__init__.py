"""Methods beside each other on many graphs: suites, rows that are judged, tables made of rows."""
