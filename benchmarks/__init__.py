"""Programs that measure Penstock; `penstock bench` runs them."""
