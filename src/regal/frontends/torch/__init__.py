"""Read PyTorch graphs: fx graph modules whose nodes carry fake tensors."""
