"""The way of a model as plain functions: what a step of a run and `penstock compile` both do.

Nothing here knows of steps, queues or databases, and nothing prints; long functions take a `progress` callback.
"""
