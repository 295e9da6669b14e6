"""Backups of a whole service, and services made of them."""
