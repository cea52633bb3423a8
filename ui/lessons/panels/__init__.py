"""One module a chapter: ``figures`` computes what its words need, ``panel`` draws what stands beside them."""
