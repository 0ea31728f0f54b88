"""Widgets that panes are made of."""
