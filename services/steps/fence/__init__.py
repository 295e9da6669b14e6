"""A fence around foreign code, made of plain Linux calls: what it can see, do and use up is said beforehand."""
