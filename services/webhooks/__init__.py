"""Telling others how runs ended, after the Standard Webhooks specification."""
