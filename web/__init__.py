"""Penstock's pages: templates, styles, and the functions that draw records as HTML and SVG."""
