"""Learning offline: networks, environments, trainers; needs the extra `train`."""
