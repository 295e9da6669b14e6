"""From virtual instances to elements of hardware: several on one, in turns (bundle) or one after the other (chain)."""
