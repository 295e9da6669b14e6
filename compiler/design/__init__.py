"""The record of every decision that makes one accelerator out of a model."""
