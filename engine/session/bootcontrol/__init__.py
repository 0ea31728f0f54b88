"""A booted kernel under control of a front end: commands and views as of a program's guest."""
