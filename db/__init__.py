"""The database: the only truth about models, runs and steps. See db/README.md."""

from penstock.db.database import Database, Transaction

__all__ = ["Database", "Transaction"]
