"""Pieces that a page is put together from, one function each."""
