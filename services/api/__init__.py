"""The REST API and the pages of the service. The application: `penstock.services.api.app:create_app` (a factory)."""
