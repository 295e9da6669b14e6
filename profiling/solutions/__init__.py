"""What a folder of a real tool's run says, as one record and one page."""
