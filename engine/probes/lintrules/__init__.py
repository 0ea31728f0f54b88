"""The placement rules by subject: what stands at a place, and what is in use there."""
