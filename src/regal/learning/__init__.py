"""Learning offline: networks, environments, trainers. Needs torch (`pip install 'regal[train]'`)."""
