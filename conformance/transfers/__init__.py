"""Copies, moves and drains that the master carries out itself."""
