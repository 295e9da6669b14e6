"""The IR: types and operations as data, one verifier each."""
