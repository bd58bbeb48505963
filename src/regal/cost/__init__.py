"""What an op and a transfer cost on a device."""
