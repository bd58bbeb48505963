"""PyTorch programs: write a plan into fx graphs, run them, and judge both."""
