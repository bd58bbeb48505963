"""What regal is compared with: orders of runtimes and compilers, and general search."""
