"""Search for schedules on several devices."""
