"""Why a design: what sets its pace, what binds, which parameters mattered."""
