"""All SQL of Penstock: one repository a table, methods with names from the domain, frozen records back."""
