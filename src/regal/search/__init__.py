"""Search methods: they take a native problem and return the best order they found."""
