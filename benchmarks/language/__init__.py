"""Language models beside the published figures: the parts of the benchmark `llm`, and the page that they make."""
