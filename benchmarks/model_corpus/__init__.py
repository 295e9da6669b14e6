"""Small models of the kinds that people have, for `penstock bench models`."""
