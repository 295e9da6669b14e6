"""The parts of the design space: each file knows one kind of decision."""
