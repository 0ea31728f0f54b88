"""IA-64 (Itanium): bundles, the table of instruction formats, text."""
