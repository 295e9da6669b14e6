"""The client of the REST API. Its public names stand in `penstock/client.py`."""
