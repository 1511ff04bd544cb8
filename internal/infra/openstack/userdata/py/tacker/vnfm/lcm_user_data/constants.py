"""Limits that user data scripts may read."""

USER_DATA_TIMEOUT = 60
