"""The screens of the interface: the main one, and those that cover it."""
