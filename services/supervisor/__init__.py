"""One command for the whole service on one machine: embedded servers, migrations, API, workers."""
