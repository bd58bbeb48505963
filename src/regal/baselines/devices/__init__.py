"""What schedules on several devices are compared with."""
