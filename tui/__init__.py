"""The Textual front end and the entry point of the command."""
