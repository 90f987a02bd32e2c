"""What tasks need, as bytes: functions, data, and modules of the user's project."""
