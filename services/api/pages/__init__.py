"""The pages for people: the same documents that the API gives, drawn by web/."""
