"""Measures file systems on loop devices: a table of the shape of Cao 2018's Storage V1."""
