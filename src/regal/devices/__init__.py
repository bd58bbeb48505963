"""What a plan runs on: devices and the links between them."""
