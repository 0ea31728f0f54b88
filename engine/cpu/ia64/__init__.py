"""The IA-64 core: slots are compiled to Python functions."""
